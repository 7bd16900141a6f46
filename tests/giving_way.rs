//! Does a long future give way, and does it come back?

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use support::{BOTH, lanes, time_limit};

/// The only thread computes until a job has run that waits for it.
#[test]
fn a_long_future_lets_others_run() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let others_ran = Arc::new(AtomicBool::new(false));
        let long = {
            let others_ran = others_ran.clone();
            lanes.cpu.spawn(async move {
                while !others_ran.load(SeqCst) {
                    twolane::yield_if_due().await;
                }
            })
        };
        lanes
            .cpu
            .spawn_cpu(move || others_ran.store(true, SeqCst))
            .wait()
            .unwrap();
        long.wait().unwrap();
    }
}

/// It is where a future that never waits sees that it was cancelled, or that
/// its lane shuts down.
#[test]
fn a_long_future_sees_its_end() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let endless = || {
            let (started, running) = std::sync::mpsc::channel();
            let task = lanes.cpu.spawn(async move {
                started.send(()).unwrap();
                loop {
                    twolane::yield_if_due().await;
                }
            });
            running.recv().unwrap();
            task
        };
        let cancelled: twolane::Task<()> = endless();
        cancelled.cancel();
        assert!(cancelled.wait().unwrap_err().is_cancelled());
        let shut_down: twolane::Task<()> = endless();
        assert_eq!(lanes.cpu.shutdown().wait(), 0);
        assert!(shut_down.wait().unwrap_err().is_shutdown());
    }
}

/// Jobs that keep coming don't keep it from coming back.
#[test]
fn a_steady_arrival_does_not_starve_it() {
    fn arrive(over: Arc<AtomicBool>, ran: Arc<AtomicUsize>) {
        ran.fetch_add(1, SeqCst);
        if !over.load(SeqCst) {
            twolane::spawn_cpu(move || arrive(over, ran)).detach();
        }
    }
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let (over, ran) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        for _ in 0..3 {
            let (over, ran) = (over.clone(), ran.clone());
            lanes.cpu.spawn_cpu(move || arrive(over, ran)).detach();
        }
        let long = {
            let ran = ran.clone();
            lanes.cpu.spawn(async move {
                // Three times it gave way, and somebody else ran.
                for _ in 0..3 {
                    let before = ran.load(SeqCst);
                    while ran.load(SeqCst) == before {
                        twolane::yield_if_due().await;
                    }
                }
            })
        };
        long.wait().unwrap();
        over.store(true, SeqCst);
    }
}
