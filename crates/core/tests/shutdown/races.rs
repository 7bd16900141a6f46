//! What runs against a shutdown, or a second one, ends in exactly one way.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use crate::support::at_end::at_thread_end;
use crate::support::{Stuck, lanes, nothing, time_limit};
use futures::FutureExt;
use futures::executor::block_on;
use twolane_core::{CpuRuntime, Remaining};

/// From many threads at once, in all forms, while a job runs.
#[test]
fn shutdown_twice_and_concurrently() {
    let lanes = lanes(1);
    let cpu = Arc::new(lanes.cpu);
    let stuck = Stuck::<()>::start(cpu.handle());
    let together = Arc::new(Barrier::new(9));
    let threads: Vec<_> = (0..8)
        .map(|n| {
            let (cpu, together) = (cpu.clone(), together.clone());
            std::thread::spawn(move || {
                together.wait();
                match n % 3 {
                    0 => cpu.shutdown().wait(),
                    1 => cpu.shutdown_timeout(Duration::from_secs(3600)).wait(),
                    _ => {
                        cpu.shutdown_background();
                        Remaining::default()
                    }
                }
            })
        })
        .collect();
    together.wait();
    stuck.end();
    for thread in threads {
        assert!(thread.join().unwrap().is_empty());
    }
}

/// An awaiter that waits, when it is woken, for this to be sent.
struct WaitsFor(Mutex<mpsc::Receiver<()>>);

impl Wake for WaitsFor {
    fn wake(self: Arc<Self>) {
        self.0.lock().unwrap().recv().unwrap();
    }
}

/// With a million awaited jobs queued, a limit of 10 ms took 521 ms: the thread that closes them
/// woke all their awaiters before it looked at the time. Here one of many is woken after the limit
/// has passed, or never.
#[test]
fn a_limit_does_not_wait_for_the_queued_jobs() {
    let (cpu, lanes) = lanes(1).and_handle();
    let stuck = Stuck::<()>::start(&cpu);
    let mut tasks: Vec<_> = (0..1_000).map(|_| cpu.spawn_cpu(nothing)).collect();
    let (first, last) = (0, tasks.len() - 1);
    let [limited, over] = [first, last].map(|n| {
        let (tell, told) = mpsc::channel();
        let waker = Waker::from(Arc::new(WaitsFor(Mutex::new(told))));
        let polled = tasks[n].poll_unpin(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        tell
    });
    let shutdown = lanes.cpu.shutdown_timeout(Duration::ZERO);
    limited.send(()).unwrap();
    assert_eq!(shutdown.wait().jobs, 1);
    over.send(()).unwrap();
    for task in tasks {
        assert!(task.wait().unwrap_err().is_unavailable());
    }
    stuck.end();
    assert!(lanes.cpu.shutdown().wait().is_empty());
}

/// A start hook ends the I/O runtime, and so closes the lane while `build` starts its threads. The
/// control thread ended before them: `shutdown` did not wait, and `closed` never came.
#[test]
fn a_lane_that_closes_in_its_build_ends_whole() {
    let _limit = time_limit();
    for _ in 0..50 {
        let io = tokio::runtime::Runtime::new().unwrap();
        let handle = io.handle().clone();
        let io = Mutex::new(Some(io));
        let alive = Arc::new(AtomicUsize::new(0));
        let (starts, ends) = (alive.clone(), alive.clone());
        let lane = CpuRuntime::builder().worker_threads(2);
        let lane = lane.io_handle(handle).on_thread_start(move || {
            starts.fetch_add(1, SeqCst);
            let ends = ends.clone();
            at_thread_end(move || _ = ends.fetch_sub(1, SeqCst));
            if let Some(io) = io.lock().unwrap().take() {
                io.shutdown_background();
            }
        });
        let cpu = lane.build().unwrap();
        assert!(cpu.shutdown().wait().is_empty());
        assert_eq!(alive.load(SeqCst), 0);
        block_on(cpu.handle().closed());
    }
}
