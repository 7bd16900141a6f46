//! A value on the I/O lane is dropped there, whatever ends its owner.

use std::future::pending;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use crate::dropping::{self, Probe, end_of};
use crate::gate::gate;
use crate::stepped::{Stepped, wait};
use crate::support::wait::wait_until;
use crate::support::{Lanes, lanes, thread_name};
use futures::{StreamExt, stream};
use twolane::{HandleExt, IoOwned, JoinErrorKind, Task};

type Value = IoOwned<Probe>;

/// A job that is suspended in a call for ever.
fn in_a_call(lanes: &Lanes, mut value: Value) -> Task<()> {
    let (begun, begins) = mpsc::channel();
    let job = lanes.cpu.spawn(async move {
        let stay = async move |_: &mut Probe| {
            begun.send(()).unwrap();
            pending::<()>().await;
        };
        value.with(stay).await.unwrap();
    });
    begins.recv().unwrap();
    job
}

type Way = (&'static str, fn(&Lanes, Value));

/// The ways of its own that such a value has, beside those of all values. The lane has one thread.
const WAYS: [Way; 11] = [
    ("its job ends after a call", |lanes, mut value| {
        let job = async move { value.with(async |_| ()).await.unwrap() };
        lanes.cpu.spawn(job).wait().unwrap();
    }),
    ("refused, since it is late", |lanes, value| {
        let permit = lanes.cpu.handle().try_reserve().unwrap();
        let late = permit.with_deadline(Instant::now());
        let job = late.spawn(async move { drop(value) });
        assert_eq!(job.wait().unwrap_err().kind(), JoinErrorKind::Expired);
    }),
    ("cancelled during a call", |lanes, value| {
        drop(in_a_call(lanes, value));
    }),
    ("a call panics, and then its job", |lanes, mut value| {
        let job = lanes.cpu.spawn(async move {
            value.with(async |_| panic!("of a call")).await.unwrap();
        });
        assert!(job.wait().unwrap_err().is_panic());
    }),
    ("shut down during a call", |lanes, value| {
        let job = in_a_call(lanes, value);
        assert!(lanes.cpu.shutdown().wait().is_empty());
        assert_eq!(job.wait().unwrap_err().kind(), JoinErrorKind::Shutdown);
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

fn is_dropped_on_io(way: &str, end: impl FnOnce(&Lanes, Value, &dyn Fn())) {
    println!("{way}");
    let end = end_of(|lanes, probe, is_dropped| {
        end(lanes, lanes.cpu.handle().io_owned(probe), is_dropped);
    });
    assert_eq!([&*end.dropped_on, &*end.spawned_on], ["io"; 2]);
    assert!(end.in_a_task);
}

/// Used in any way, by an owner that is a job and ends in any of the ways in which jobs end.
#[test]
fn a_value_is_dropped_on_the_io_lane_whatever_ends_its_owner() {
    for (way, end) in WAYS {
        is_dropped_on_io(way, |lanes, value, _| end(lanes, value));
    }
    for (way, end) in dropping::WAYS {
        is_dropped_on_io(way, |lanes, value, is_dropped| {
            end(lanes, Box::new(value), is_dropped);
        });
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
    let Lanes { cpu, io } = lanes(1);
    let context = Some(io.handle().id());
    let (dropped, drops) = mpsc::channel();
    let handle = cpu.handle().clone();
    let value = || handle.io_owned(Last(dropped.clone()));
    let (mut in_call, in_job) = (value(), value());
    type Use = fn(IoOwned<Last>) -> String;
    let uses: [(_, Use); 3] = [
        (value(), |mut value| {
            wait(value.with(async |_| ())).unwrap_err().to_string()
        }),
        (value(), |value| {
            wait(value.take(async |_| ())).unwrap_err().to_string()
        }),
        (value(), |value| {
            let mut stream = value.into_stream(|_| stream::iter([1]).boxed(), 1, |_| 1);
            wait(stream.next()).unwrap().unwrap_err().to_string()
        }),
    ];
    let shared = handle.io_owned(Arc::new(Last(dropped.clone()))).shared();

    let (begun, begins) = mpsc::channel();
    let caller = std::thread::spawn(move || {
        let call = in_call.with(async move |_| {
            begun.send(()).unwrap();
            pending::<()>().await;
        });
        let error = wait(call).unwrap_err();
        assert_eq!(error.kind(), JoinErrorKind::IoRuntimeGone, "{error}");
    });
    begins.recv().unwrap();
    let (gate, stay) = gate();
    let job = cpu.spawn_cpu(move || {
        let _value = in_job;
        stay();
    });
    gate.is_reached();
    drop(io);

    // The call ends with the runtime, and its thread then drops the value.
    caller.join().unwrap();
    assert_eq!(drops.recv().unwrap().1, context);
    for (value, used) in uses {
        let error = used(value);
        assert!(
            error.contains("I/O runtime") || error.contains("I/O lane stopped"),
            "{error}"
        );
        assert_eq!(drops.recv().unwrap(), (thread_name(), context));
    }
    let error = wait(shared.with(async |_| ())).unwrap_err();
    assert_eq!(error.kind(), JoinErrorKind::IoRuntimeGone, "{error}");
    drop(shared);
    assert_eq!(drops.recv().unwrap(), (thread_name(), context));
    drop(gate);
    job.wait().unwrap();
    assert_eq!(drops.recv().unwrap(), ("cpu-0".to_owned(), context));
}

/// The value was given up in time, but the runtime ends before it comes to the drop.
#[test]
fn a_runtime_that_ends_drops_the_values_that_wait_for_it() {
    let Stepped { cpu, io } = Stepped::new();
    let context = Some(io.handle().id());
    let (dropped, drops) = mpsc::channel();
    drop(cpu.handle().io_owned(Last(dropped)));
    assert!(drops.try_recv().is_err());
    drop(io);
    assert_eq!(drops.recv().unwrap(), (thread_name(), context));
}
