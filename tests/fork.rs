//! What does a forked child, which has none of the lane's threads, see of it?

#![cfg(target_os = "linux")]

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};

use fork::{Fork, fork, waitpid};
use support::{BOTH, Lanes, Stuck, lanes_with, time_limit};
use tokio::runtime;
use twolane::{Backend, CpuRuntime, Priority, Task};

/// In a process of its own, whose threads no other test has made.
#[test]
fn a_fork_gets_errors_and_hangs_nowhere() {
    let _limit = time_limit();
    if support::child::is_child() {
        for backend in BOTH {
            in_a_fork(backend);
        }
        support::child::found("nothing that hangs");
        return;
    }
    let found = support::child::run("a_fork_gets_errors_and_hangs_nowhere", |_| (), |_| ());
    assert_eq!(found, "nothing that hangs");
}

struct Before {
    lanes: Lanes,
    done: Task<u8>,
    stuck: Task<()>,
    queued: Task<()>,
    suspended: Task<()>,
    shutdown: twolane::Shutdown,
}

fn in_a_fork(backend: Backend) {
    let limited = |builder: twolane::Builder| builder.queue_limit(Priority::Low, 1);
    let lanes = lanes_with(backend, 1, limited);
    let cpu = lanes.cpu.handle();
    let done = cpu.spawn_cpu(|| 42);
    while !done.is_finished() {
        std::thread::yield_now();
    }
    let suspended = cpu.spawn(std::future::pending());
    let (stuck, let_go) = Stuck::start(&cpu).split();
    let other = lanes_with(backend, 1, |builder| builder);
    let (other_stuck, let_other_go) = Stuck::start(&other.cpu.handle()).split();
    let before = Before {
        done,
        stuck,
        queued: cpu.spawn_cpu(|| ()),
        suspended,
        shutdown: other.cpu.shutdown(),
        lanes,
    };
    match fork().unwrap() {
        Fork::Child => {
            let _limit = time_limit();
            let outcome = catch_unwind(AssertUnwindSafe(|| look_around(before)));
            // Destructors and test harness are the parent's.
            std::process::exit(if outcome.is_ok() { 0 } else { 1 });
        }
        Fork::Parent(child) => {
            let status = waitpid(child).unwrap();
            assert_eq!(status, 0, "{backend:?}: see what the child has printed");
            // All goes on here.
            let_go.send(()).unwrap();
            let_other_go.send(()).unwrap();
            other_stuck.wait().unwrap();
            before.stuck.wait().unwrap();
            before.queued.wait().unwrap();
            drop(before.suspended);
            assert_eq!(before.shutdown.wait(), 0);
            assert_eq!(cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
        }
    }
}

fn look_around(before: Before) {
    let cpu = before.lanes.cpu.handle();
    assert_eq!(before.done.wait().unwrap(), 42, "it had ended before");
    for task in [before.stuck, before.queued, before.suspended] {
        let error = task.wait().unwrap_err();
        assert!(error.is_forked(), "{error}");
    }
    assert!(cpu.spawn_cpu(|| ()).wait().unwrap_err().is_forked());
    assert!(cpu.spawn_io(async {}).wait().unwrap_err().is_forked());
    if cpu.backend() == Backend::Rayon {
        assert!(cpu.install(|| ()).unwrap_err().is_forked());
    }
    let low = cpu.with_priority(Priority::Low);
    let _place = low.try_admit().unwrap();
    assert!(low.admit().wait().unwrap_err().is_forked());
    assert_eq!(before.shutdown.wait(), 1, "it was running");
    before.lanes.cpu.shutdown().wait();

    // By await too, on a runtime of the child's own; and a lane of its own works.
    let io = runtime::Builder::new_current_thread().build().unwrap();
    let task = cpu.spawn_cpu(|| ());
    assert!(io.block_on(task).unwrap_err().is_shutdown());
    let ours = CpuRuntime::builder().io_handle(io.handle().clone());
    let ours = ours.backend(cpu.backend()).threads(2).build().unwrap();
    assert_eq!(io.block_on(ours.spawn_cpu(|| 6 * 7)).unwrap(), 42);
    // What is the parent's is left alone.
    std::mem::forget(before.lanes);
}
