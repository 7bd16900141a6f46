//! What runs against a shutdown, or a second one, ends in exactly one way.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::support::{BOTH, Stuck, lanes, time_limit};
use twolane::Remaining;

/// From many threads at once, in all forms, while a job runs.
#[test]
fn shutdown_twice_and_concurrently() {
    let _limit = time_limit();
    for backend in BOTH {
        let lanes = lanes(backend, 1);
        let cpu = Arc::new(lanes.cpu);
        let (stuck, let_go) = Stuck::<()>::start(&cpu.handle()).split();
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
        let_go.send(()).unwrap();
        stuck.wait().unwrap();
        for thread in threads {
            assert!(thread.join().unwrap().is_empty());
        }
    }
}

/// Each submission ends in exactly one way, whenever the shutdown comes: the
/// job ran and its task has the output, or it did not and its task says why.
#[test]
fn submission_against_shutdown() {
    let _limit = time_limit();
    for backend in BOTH {
        for round in 0..60 {
            let lanes = lanes(backend, 1 + round % 2);
            let handle = lanes.cpu.handle();
            let together = Arc::new(Barrier::new(4));
            let submitters: Vec<_> = (0..3)
                .map(|_| {
                    let (handle, together) = (handle.clone(), together.clone());
                    std::thread::spawn(move || {
                        together.wait();
                        let ran = Arc::new(AtomicUsize::new(0));
                        let tasks: Vec<_> = (0..200)
                            .map(|n| {
                                let ran = ran.clone();
                                if n % 2 == 0 {
                                    handle.spawn_cpu(move || ran.fetch_add(1, SeqCst))
                                } else {
                                    handle.spawn(async move {
                                        tokio::task::yield_now().await;
                                        ran.fetch_add(1, SeqCst)
                                    })
                                }
                            })
                            .collect();
                        let mut outputs = 0;
                        for task in tasks {
                            match task.wait() {
                                Ok(_) => outputs += 1,
                                Err(error) => assert!(error.is_shutdown(), "{error}"),
                            }
                        }
                        assert_eq!(outputs, ran.load(SeqCst));
                    })
                })
                .collect();
            together.wait();
            for _ in 0..round {
                std::thread::yield_now();
            }
            match round % 3 {
                0 => drop(lanes.cpu),
                1 => lanes.cpu.shutdown_background(),
                _ => assert!(lanes.cpu.shutdown().wait().is_empty()),
            }
            for submitter in submitters {
                submitter.join().unwrap();
            }
        }
    }
}

/// A suspended future whose waker is called while, and after, the lane closes.
#[test]
fn wakes_against_shutdown() {
    let _limit = time_limit();
    for backend in BOTH {
        for _ in 0..200 {
            let lanes = lanes(backend, 1);
            let (go, wait) = tokio::sync::oneshot::channel::<()>();
            let task = lanes.cpu.spawn(async move { wait.await.is_ok() });
            let together = Arc::new(Barrier::new(2));
            let waker = {
                let together = together.clone();
                std::thread::spawn(move || {
                    together.wait();
                    let _ = go.send(());
                })
            };
            together.wait();
            lanes.cpu.shutdown_background();
            match task.wait() {
                Ok(woken) => assert!(woken),
                Err(error) => assert!(error.is_shutdown(), "{error}"),
            }
            waker.join().unwrap();
            assert!(lanes.cpu.shutdown().wait().is_empty());
        }
    }
}
