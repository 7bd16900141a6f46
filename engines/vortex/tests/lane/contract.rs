//! What vortex asks of an executor, by its own handle.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Instant;

use tokio::sync::oneshot;
use twolane_core::{Builder, Priority};
use twolane_vortex::on_lane;
use vortex::io::runtime::{Handle, Task};
use vortex::io::session::RuntimeSessionExt;
use vortex::session::VortexSession;

use crate::setting::lanes_with;
use crate::support::{Dropped, Lanes, lasts, thread_name};

/// The runtime of a session on lanes.
fn with_runtime(test: impl FnOnce(&Lanes, &Handle)) {
    with_settings(|builder| builder, test);
}

/// The session is kept, since it keeps the runtime.
fn with_settings(set: impl FnOnce(Builder) -> Builder, test: impl FnOnce(&Lanes, &Handle)) {
    let lanes = lanes_with(set);
    let session = lanes.session();
    test(&lanes, &session.handle());
}

fn is_on(kind: &str, name: String) {
    assert_eq!(name.split('-').next(), Some(kind), "{name}");
}

#[test]
fn each_call_has_its_lane() {
    with_runtime(|lanes, handle| {
        let wait = |task| lanes.io.block_on(task);
        is_on("cpu", wait(handle.spawn(async { thread_name() })));
        is_on("cpu", wait(handle.spawn_cpu(thread_name)));
        is_on("io", wait(handle.spawn_io(async { thread_name() })));
        is_on("io", wait(handle.spawn_blocking(thread_name)));
    });
}

/// More closures wait for one another than the I/O runtime has workers.
#[test]
fn blocking_closures_leave_the_io_workers_alone() {
    with_runtime(|lanes, handle| {
        let all = Arc::new(Barrier::new(5));
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let all = all.clone();
                handle.spawn_blocking(move || all.wait())
            })
            .collect();
        // The workers still answer.
        let answer = lanes.io.spawn(async { 42 });
        assert_eq!(lanes.io.block_on(answer).unwrap(), 42);
        all.wait();
        for task in tasks {
            lanes.io.block_on(task);
        }
    });
}

fn spawn_on_either(
    handle: &Handle,
    on_io: bool,
    future: impl Future<Output = ()> + Send + 'static,
) -> Task<()> {
    match on_io {
        true => handle.spawn_io(future),
        false => handle.spawn(future),
    }
}

#[test]
fn a_dropped_task_is_aborted() {
    with_runtime(|lanes, handle| {
        for on_io in [false, true] {
            let (dropped, is_dropped) = mpsc::channel();
            let (future, polled) = lasts(Dropped(dropped));
            let task = spawn_on_either(handle, on_io, future);
            polled.recv().unwrap();
            drop(task);
            is_dropped.recv().unwrap();
        }
        lanes.until_jobs(0);
    });
}

#[test]
fn a_dropped_closure_never_runs_if_it_was_queued() {
    with_settings(
        |builder| builder.worker_threads(1),
        |lanes, handle| {
            let (let_go, wait) = mpsc::channel::<()>();
            let busy = handle.spawn_cpu(move || wait.recv().is_err());
            let has_run = Arc::new(AtomicBool::new(false));
            let run = has_run.clone();
            drop(handle.spawn_cpu(move || run.store(true, SeqCst)));
            drop(let_go);
            assert!(lanes.io.block_on(busy));
            lanes.until_jobs(0);
            assert!(!has_run.load(SeqCst));
            assert_eq!(lanes.cpu.handle().metrics().cancelled, 1);
        },
    );
}

/// Vortex itself does not run a closure that was detached while it was queued.
#[test]
fn a_detached_future_goes_on() {
    with_runtime(|lanes, handle| {
        for on_io in [false, true] {
            let (let_go, wait) = oneshot::channel::<()>();
            let (done, finished) = mpsc::channel();
            let future = async move {
                wait.await.unwrap();
                done.send(()).unwrap();
            };
            spawn_on_either(handle, on_io, future).detach();
            let_go.send(()).unwrap();
            finished.recv().unwrap();
        }
        lanes.until_jobs(0);
    });
}

/// Its awaiter panics with the same payload, as vortex promises.
#[test]
fn a_panic_goes_to_the_awaiter() {
    with_runtime(|lanes, handle| {
        let tasks = [
            handle.spawn(async { panic!("broken") }),
            handle.spawn_io(async { panic!("broken") }),
            handle.spawn_cpu(|| panic!("broken")),
            handle.spawn_blocking(|| panic!("broken")),
        ];
        for task in tasks {
            let payload = lanes
                .io
                .block_on(lanes.io.spawn(task))
                .unwrap_err()
                .into_panic();
            assert_eq!(payload.downcast_ref::<&str>(), Some(&"broken"));
        }
    });
}

/// Of vortex's own jobs none is refused for a full queue, and a session outlives the request whose
/// handle it got.
#[test]
fn spawns_need_no_permit_and_have_no_deadline() {
    with_settings(
        |builder| builder.queue_limit(Priority::Normal, 1),
        |lanes, _| {
            let _permit = lanes.cpu.handle().try_reserve().unwrap();
            let late = lanes.cpu.handle().with_deadline(Instant::now());
            let session = on_lane(VortexSession::empty(), &late);
            assert_eq!(lanes.io.block_on(session.handle().spawn_cpu(|| 42)), 42);
            assert_eq!(lanes.io.block_on(session.handle().spawn(async { 42 })), 42);
        },
    );
}

#[test]
fn spawns_run_at_the_priority_of_the_handle() {
    with_runtime(|lanes, _| {
        let low = lanes.cpu.handle().with_priority(Priority::Low);
        let session = on_lane(VortexSession::empty(), &low);
        let priority = || twolane_core::Handle::current().priority();
        let task = session.handle().spawn_cpu(priority);
        assert_eq!(lanes.io.block_on(task), Priority::Low);
        let task = session.handle().spawn(async move { priority() });
        assert_eq!(lanes.io.block_on(task), Priority::Low);
    });
}
