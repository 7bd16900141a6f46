//! A value on the I/O lane is dropped there, whatever ends its owner.

use std::future::pending;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use crate::stepped::{Stepped, wait};
use crate::support::wait::wait_until;
use crate::support::{self, BOTH, Lanes, Stuck, lanes, thread_name};
use futures::{StreamExt, stream};
use twolane::{HandleExt, IoOwned, Task};

/// Where a value was dropped, and where the task ran that its destructor spawned.
#[derive(Debug, PartialEq)]
struct End {
    dropped_on: String,
    in_a_task: bool,
    spawned_on: String,
}

/// Spawns in its destructor, as a pooled connection does that goes back to its pool.
struct Probe(mpsc::Sender<End>);

impl Drop for Probe {
    fn drop(&mut self) {
        let ends = self.0.clone();
        let dropped_on = thread_name();
        let in_a_task = tokio::task::try_id().is_some();
        tokio::spawn(async move {
            let spawned_on = thread_name();
            let end = End {
                dropped_on,
                in_a_task,
                spawned_on,
            };
            ends.send(end).unwrap();
        });
    }
}

type Value = IoOwned<Probe>;

/// A call that has begun and never ends.
async fn call(value: &mut Value, begun: mpsc::Sender<()>) {
    let stay = async move |_: &mut Probe| {
        begun.send(()).unwrap();
        pending::<()>().await;
    };
    value.with(stay).await.unwrap();
}

/// A job that has the value and is suspended for ever.
fn suspended(lanes: &Lanes, value: Value) -> Task<()> {
    let (begun, begins) = mpsc::channel();
    let job = lanes.cpu.spawn(async move {
        let _value = value;
        begun.send(()).unwrap();
        pending::<()>().await
    });
    begins.recv().unwrap();
    job
}

/// A job that is suspended in a call for ever.
fn in_a_call(lanes: &Lanes, mut value: Value) -> Task<()> {
    let (begun, begins) = mpsc::channel();
    let job = lanes
        .cpu
        .spawn(async move { call(&mut value, begun).await });
    begins.recv().unwrap();
    job
}

type Way = (&'static str, fn(&Lanes, Value));

/// Each ends the owner of a value in its own way. The lane has one thread.
const WAYS: [Way; 19] = [
    ("a job ends", |lanes, mut value| {
        let job = async move { value.with(async |_| ()).await.unwrap() };
        lanes.cpu.spawn(job).wait().unwrap();
    }),
    ("cancelled while queued", |lanes, value| {
        let (stuck, let_go) = Stuck::start(&lanes.cpu.handle()).split();
        drop(lanes.cpu.spawn(async move { drop(value) }));
        let_go.send(()).unwrap();
        stuck.wait().unwrap();
    }),
    ("cancelled while suspended", |lanes, value| {
        let job = suspended(lanes, value);
        drop(job);
    }),
    ("cancelled while a closure runs", |lanes, value| {
        let (begun, begins) = mpsc::channel();
        let (let_go, wait) = mpsc::channel::<()>();
        let job = lanes.cpu.spawn_cpu(move || {
            let _value = value;
            begun.send(()).unwrap();
            wait.recv().unwrap();
        });
        begins.recv().unwrap();
        drop(job);
        let_go.send(()).unwrap();
    }),
    ("cancelled while a future runs", |lanes, value| {
        let (begun, begins) = mpsc::channel();
        let (let_go, wait) = mpsc::channel::<()>();
        let job = lanes.cpu.spawn(async move {
            let _value = value;
            begun.send(()).unwrap();
            wait.recv().unwrap();
            pending::<()>().await
        });
        begins.recv().unwrap();
        drop(job);
        let_go.send(()).unwrap();
    }),
    ("cancelled during a call", |lanes, value| {
        let job = in_a_call(lanes, value);
        drop(job);
    }),
    ("expired", |lanes, value| {
        let permit = lanes.cpu.handle().try_reserve().unwrap();
        let late = permit.with_deadline(Instant::now());
        let job = late.spawn(async move { drop(value) });
        assert!(job.wait().unwrap_err().is_expired());
    }),
    ("a future panics", |lanes, value| {
        let job = lanes.cpu.spawn(async move {
            let _value = value;
            panic!("of a job");
        });
        assert!(job.wait().unwrap_err().is_panic());
    }),
    ("a closure panics", |lanes, value| {
        let job = lanes.cpu.spawn_cpu(move || {
            let _value = value;
            panic!("of a job");
        });
        assert!(job.wait().unwrap_err().is_panic());
    }),
    ("a call panics, and then its job", |lanes, mut value| {
        let job = lanes.cpu.spawn(async move {
            value.with(async |_| panic!("of a call")).await.unwrap();
        });
        assert!(job.wait().unwrap_err().is_panic());
    }),
    ("shut down while queued", |lanes, value| {
        let (stuck, let_go) = Stuck::start(&lanes.cpu.handle()).split();
        let job = lanes.cpu.spawn(async move { drop(value) });
        let over = lanes.cpu.shutdown();
        let_go.send(()).unwrap();
        stuck.wait().unwrap();
        assert!(over.wait().is_empty());
        assert!(job.wait().unwrap_err().is_shutdown());
    }),
    ("shut down while suspended", |lanes, value| {
        let job = suspended(lanes, value);
        assert!(lanes.cpu.shutdown().wait().is_empty());
        assert!(job.wait().unwrap_err().is_shutdown());
    }),
    ("shut down during a call", |lanes, value| {
        let job = in_a_call(lanes, value);
        assert!(lanes.cpu.shutdown().wait().is_empty());
        assert!(job.wait().unwrap_err().is_shutdown());
    }),
    ("an output that no awaiter reads", |lanes, value| {
        let task = lanes.cpu.spawn(async move { value });
        wait_until(|| task.is_finished());
        drop(task);
    }),
    ("a plain thread unwinds", |_, value| {
        let thread = std::thread::spawn(move || {
            let _value = value;
            panic!("of a thread");
        });
        assert!(thread.join().is_err());
    }),
    ("taken", |lanes, value| {
        let job = lanes
            .cpu
            .spawn(async move { value.take(async |probe| drop(probe)).await });
        job.wait().unwrap().unwrap();
    }),
    ("cancelled after it was taken", |lanes, value| {
        let (begun, begins) = mpsc::channel();
        let job = lanes.cpu.spawn(value.take(async move |_probe| {
            begun.send(()).unwrap();
            pending::<()>().await
        }));
        begins.recv().unwrap();
        drop(job);
    }),
    ("a stream of it ends", |lanes, value| {
        let stream = value.into_stream(|_| stream::iter([1, 2]).boxed(), 1, |_| 1);
        let read = lanes
            .cpu
            .spawn(stream.map(Result::unwrap).collect::<Vec<_>>());
        assert_eq!(read.wait().unwrap(), [1, 2]);
    }),
    ("a stream of it is dropped", |lanes, value| {
        let mut stream = value.into_stream(|_| stream::repeat(1).boxed(), 1, |_| 1);
        let read = lanes.cpu.spawn(async move { stream.next().await });
        assert_eq!(read.wait().unwrap().unwrap().unwrap(), 1);
    }),
];

/// A job's thread drops what the job has captured. If that is a connection whose
/// destructor spawns, the spawned task would be the CPU lane's on `Backend::Runtime`, and
/// would wait there for the end of all that computes.
#[test]
fn a_value_is_dropped_on_the_io_lane_whatever_ends_its_owner() {
    let _limit = support::time_limit();
    for backend in BOTH {
        for (way, end) in WAYS {
            let lanes = lanes(backend, 1);
            let (ends, ended) = mpsc::channel();
            end(&lanes, lanes.cpu.handle().io_owned(Probe(ends)));
            let expected = End {
                dropped_on: "io".to_owned(),
                in_a_task: true,
                spawned_on: "io".to_owned(),
            };
            assert_eq!(ended.recv(), Ok(expected), "{backend:?}: {way}");
            assert!(ended.recv().is_err(), "{backend:?}: {way}: dropped twice");
        }
    }
}

/// Notes the thread and the runtime's context of its drop, and spawns there.
struct Last(mpsc::Sender<(String, Option<tokio::runtime::Id>)>);

impl Drop for Last {
    fn drop(&mut self) {
        let here = tokio::runtime::Handle::try_current().ok();
        tokio::spawn(async { unreachable!("this runtime is gone") });
        let note = (thread_name(), here.map(|here| here.id()));
        self.0.send(note).unwrap();
    }
}

/// There is no lane left to drop it on. The destructor runs all the same, and what it
/// spawns must not go to the runtime of the thread that happens to drop the value.
#[test]
fn without_its_io_runtime_a_value_is_dropped_in_that_runtime_s_context() {
    let _limit = support::time_limit();
    for backend in BOTH {
        let Lanes { cpu, io } = lanes(backend, 1);
        let context = Some(io.handle().id());
        let (dropped, drops) = mpsc::channel();
        let handle = cpu.handle();
        let mut here = handle.io_owned(Last(dropped.clone()));
        let mut in_call = handle.io_owned(Last(dropped.clone()));
        let taken = handle.io_owned(Last(dropped.clone()));
        let streamed = handle.io_owned(Last(dropped.clone()));
        let shared = handle.io_owned(Arc::new(Last(dropped.clone()))).shared();
        let in_job = handle.io_owned(Last(dropped));

        let (begun, begins) = mpsc::channel();
        let caller = std::thread::spawn(move || {
            let call = in_call.with(async move |_| {
                begun.send(()).unwrap();
                pending::<()>().await;
            });
            let error = wait(call).unwrap_err();
            assert!(error.is_io_runtime_gone(), "{error}");
        });
        begins.recv().unwrap();
        let (begun, begins) = mpsc::channel();
        let (let_go, stay) = mpsc::channel();
        let job = cpu.spawn_cpu(move || {
            let _value = in_job;
            begun.send(()).unwrap();
            stay.recv().unwrap()
        });
        begins.recv().unwrap();
        drop(io);

        // The call ends with the runtime, and its thread then drops the value.
        caller.join().unwrap();
        assert_eq!(drops.recv().unwrap().1, context, "{backend:?}");
        let error = wait(here.with(async |_| ())).unwrap_err();
        assert!(error.is_io_runtime_gone(), "{error}");
        drop(here);
        assert_eq!(drops.recv().unwrap(), (thread_name(), context));
        let error = wait(taken.take(async |_| ())).unwrap_err();
        assert!(error.is_io_runtime_gone(), "{error}");
        assert_eq!(drops.recv().unwrap(), (thread_name(), context));
        let mut stream = streamed.into_stream(|_| stream::iter([1]).boxed(), 1, |_| 1);
        let error = wait(stream.next()).unwrap().unwrap_err();
        assert!(
            error.to_string().contains("the I/O lane stopped"),
            "{error}"
        );
        assert_eq!(drops.recv().unwrap(), (thread_name(), context));
        let error = wait(shared.with(async |_| ())).unwrap_err();
        assert!(error.is_io_runtime_gone(), "{error}");
        drop(shared);
        assert_eq!(drops.recv().unwrap(), (thread_name(), context));
        let_go.send(()).unwrap();
        job.wait().unwrap();
        assert_eq!(drops.recv().unwrap(), ("cpu-0".to_owned(), context));
    }
}

/// The value was given up in time, but the runtime ends before it comes to the drop.
#[test]
fn a_runtime_that_ends_drops_the_values_that_wait_for_it() {
    let _limit = support::time_limit();
    let Stepped { cpu, io } = Stepped::new();
    let context = Some(io.handle().id());
    let (dropped, drops) = mpsc::channel();
    drop(cpu.handle().io_owned(Last(dropped)));
    assert!(drops.try_recv().is_err());
    drop(io);
    assert_eq!(drops.recv().unwrap(), (thread_name(), context));
}
