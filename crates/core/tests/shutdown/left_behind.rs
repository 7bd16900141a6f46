//! Is anything left of a job that was cancelled, when its lane shuts down?
//! (Each of these once was so.)

use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures::future::lazy;
use twolane_core::{CpuRuntime, Handle, JoinErrorKind, in_cpu_context};

use crate::support::wait::wait_until;
use crate::support::{self, PanicsOnDrop, Stuck, gives, lanes, nothing, suspended};

/// Such a job's captures were dropped by the control thread outside of any `catch`: it
/// died, and a shutdown was over before the running job.
#[test]
fn captures_that_panic_leave_the_control_thread_alive() {
    let lanes = lanes(1);
    let stuck = Stuck::start(lanes.cpu.handle());
    let captured = PanicsOnDrop;
    drop(lanes.cpu.spawn_cpu(move || drop(captured)));
    let limit = Duration::from_millis(5);
    assert_eq!(lanes.cpu.shutdown_timeout(limit).wait().jobs, 1);
    stuck.end();
    assert!(lanes.cpu.shutdown().wait().is_empty());
}

/// A destructor that blocks held the clock of `shutdown_timeout`.
#[test]
fn a_destructor_that_blocks_does_not_hold_a_timeout() {
    struct Blocks(mpsc::Receiver<()>);
    impl Drop for Blocks {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }
    let lanes = lanes(1);
    let (let_go, blocked) = mpsc::channel();
    let task = suspended(lanes.cpu.handle(), Blocks(blocked));
    // Only once it is suspended does it lie with the control thread.
    lanes.cpu.spawn_cpu(nothing).wait().unwrap();
    // Were it held, the destructor would never be let go.
    lanes.cpu.shutdown_timeout(Duration::from_millis(5)).wait();
    assert_eq!(task.wait().unwrap_err().kind(), JoinErrorKind::Shutdown);
    let_go.send(()).unwrap();
    assert!(lanes.cpu.shutdown().wait().is_empty());
}

/// A destructor that waits for the shutdown that runs it waits for itself; it
/// is told so, by a panic that ends there.
#[test]
fn a_destructor_that_waits_for_the_shutdown_that_runs_it() {
    struct Waits(Arc<CpuRuntime>);
    impl Drop for Waits {
        fn drop(&mut self) {
            self.0.shutdown().wait();
        }
    }
    let lanes = lanes(1);
    let cpu = Arc::new(lanes.cpu);
    suspended(cpu.handle(), Waits(cpu.clone())).detach();
    assert!(cpu.shutdown().wait().is_empty());
}

/// A `spawn_io` future whose runtime ended with its thread never told.
#[test]
fn a_runtime_that_ends_with_its_thread() {
    let _limit = support::time_limit();
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().build().unwrap();
    }
    let (task, state) = std::thread::spawn(|| {
        let io = RUNTIME.with(|runtime| runtime.handle().clone());
        let cpu = support::cpu_lane(1, &io);
        let task = cpu.handle().spawn_io(std::future::pending::<()>());
        (task, cpu.handle().clone())
    })
    .join()
    .unwrap();
    let error = task.wait().unwrap_err();
    assert_eq!(error.kind(), JoinErrorKind::IoRuntimeGone);
    assert!(state.io().is_gone());
}

/// Inside `spawn_io` the handle that spawned it is the current one, whatever
/// the thread that polls has entered.
#[test]
fn an_entered_handle_does_not_reach_into_others_io() {
    let io = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let entered = support::cpu_lane(1, io.handle());
    let own = support::cpu_lane(2, io.handle());
    let entered = entered.handle();
    let _entered = entered.enter();
    let threads = || Handle::current().worker_threads();
    let of_own = own.handle().spawn_io(async move { threads() });
    assert_eq!(io.block_on(of_own).unwrap(), 2);
    assert_eq!(threads(), 1);
}

/// As the pages say of a handle for a thread's whole life: it goes with the thread.
#[test]
fn a_handle_that_is_entered_for_a_threads_life_is_dropped_with_it() {
    let token = Arc::new(());
    let kept = token.clone();
    let (handle, lanes) =
        support::lanes_with(1, |lane| lane.on_thread_start(move || _ = &kept)).and_handle();
    let entered = std::thread::spawn(move || {
        std::mem::forget(handle.enter());
        drop(handle);
        twolane_core::spawn_cpu(gives(1)).wait().unwrap()
    });
    assert_eq!(entered.join().unwrap(), 1);
    assert!(lanes.cpu.shutdown().wait().is_empty());
    drop(lanes);
    // The last thread of the lane lets go of it after its end is counted.
    wait_until(|| Arc::strong_count(&token) == 1);
}

/// `shutdown_timeout` said that nothing was left while such work went on.
#[test]
fn a_thread_that_runs_no_job_is_counted() {
    for in_runtime in [false, true] {
        let lanes = lanes(1);
        let (started, runs) = mpsc::channel();
        let (let_go, wait) = mpsc::channel::<()>();
        let compute = move || {
            started.send(()).unwrap();
            wait.recv().unwrap();
        };
        let job = match in_runtime {
            false => lanes.cpu.spawn(async move { rayon::spawn(compute) }),
            true => lanes.cpu.spawn(in_cpu_context(async move {
                tokio::spawn(lazy(move |_| compute()));
            })),
        };
        job.wait().unwrap();
        runs.recv().unwrap();
        for limit in [Duration::ZERO, Duration::from_millis(5)] {
            let left = lanes.cpu.shutdown_timeout(limit).wait();
            assert!(left.jobs == 0 && left.threads > 0, "{left:?}");
        }
        let_go.send(()).unwrap();
        assert!(lanes.cpu.shutdown_timeout(Duration::MAX).wait().is_empty());
    }
}
