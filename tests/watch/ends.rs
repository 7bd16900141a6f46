//! The watch ends with its lane.

#![cfg(target_os = "linux")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::setting::{lane, runtime};
use crate::support::wait::{has_thread, wait_until};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use twolane::watch::{Watch, watch};
use twolane::{CpuRuntime, JoinErrorKind};

#[test]
fn the_watch_s_thread_ends_with_the_lane_or_its_runtime() {
    type End = fn(&mut Option<CpuRuntime>, &mut Option<Runtime>);
    let ends: [End; 3] = [
        |cpu, _| _ = cpu.as_ref().unwrap().shutdown().wait(),
        |cpu, _| drop(cpu.take()),
        |_, io| drop(io.take()),
    ];
    for end in ends {
        let io = runtime(1);
        let lane = CpuRuntime::builder().thread_name("brief");
        let lane = lane.io_handle(io.handle().clone()).watch_io(Watch::new());
        let (mut cpu, mut io) = (Some(lane.build().unwrap()), Some(io));
        wait_until(|| has_thread("brief-watch"));
        end(&mut cpu, &mut io);
        wait_until(|| !has_thread("brief-watch"));
    }
}

/// A task that blocks until what is returned is dropped.
fn block(io: &Runtime) -> (JoinHandle<()>, Sender<()>) {
    let (let_go, wait) = mpsc::channel();
    let blocks = async move { assert!(wait.recv().is_err()) };
    (io.spawn(watch(blocks)), let_go)
}

/// Once, a shutdown did not know of the watch's threads: in 4 of 160 tries `on_stall` was called
/// after it.
#[test]
fn a_shutdown_waits_for_a_hook_that_runs() {
    let io = runtime(1);
    let (runs, running) = mpsc::channel();
    let (let_go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let watched = Watch::new().on_stall(move |_| {
        runs.send(()).unwrap();
        // An error: it is let go.
        let _ = wait.lock().unwrap().recv();
    });
    let cpu = lane(&io, watched);
    let (task, end) = block(&io);
    running.recv().unwrap();
    // The others may take a while.
    wait_until(|| {
        let left = cpu.shutdown_timeout(Duration::from_millis(10)).wait();
        assert!(left.threads > 0, "the hook runs");
        (left.jobs, left.threads) == (0, 1)
    });
    drop(let_go);
    assert!(cpu.shutdown().wait().is_empty());
    // The hook is gone, and with it the other end.
    assert_eq!(running.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    drop(end);
    io.block_on(task).unwrap();
}

/// Neither waits for itself.
#[test]
fn a_hook_may_end_its_lane() {
    let ends: [fn(CpuRuntime); 4] = [
        drop,
        |cpu| cpu.shutdown_background(),
        |cpu| _ = cpu.shutdown().wait(),
        |cpu| _ = futures::executor::block_on(cpu.shutdown()),
    ];
    for (n, end) in ends.into_iter().enumerate() {
        let io = runtime(1);
        let slot = Arc::new(Mutex::new(None::<CpuRuntime>));
        let (ended, ends) = mpsc::channel();
        let own = slot.clone();
        let watched = Watch::new().on_stall(move |_| {
            let cpu = own.lock().unwrap().take().unwrap();
            let result = catch_unwind(AssertUnwindSafe(|| end(cpu)));
            ended.send(result.is_ok()).unwrap();
        });
        let cpu = lane(&io, watched);
        let handle = cpu.handle().clone();
        *slot.lock().unwrap() = Some(cpu);
        let (task, end) = block(&io);
        assert_eq!(ends.recv(), Ok(n < 2), "to wait there is a panic");
        assert_eq!(
            handle.try_reserve().unwrap_err().kind(),
            JoinErrorKind::Shutdown
        );
        // The watch's thread ends, and with it the hook.
        assert!(ends.recv().is_err());
        drop(end);
        io.block_on(task).unwrap();
    }
}
