//! What happens on the stack of a rayon worker that waits?
//!
//! It runs whatever it finds there. It must not find another job of ours.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};

use crate::support::{cpu_lane, lanes, time_limit};
use twolane::Backend;

thread_local! {
    static DEPTH: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Runs `f` and says how many jobs were on this stack already.
fn nested<R>(f: impl FnOnce() -> R) -> (usize, R) {
    let before = DEPTH.replace(DEPTH.get() + 1);
    let result = f();
    DEPTH.set(before);
    (before, result)
}

/// 1,000 jobs are queued while the jobs before them wait in rayon's `scope`
/// and `join`. If a waiting worker started one of them, the waiting job would
/// end only after that stranger, and one that waits in turn would pile up a
/// third, and so on.
#[test]
fn no_job_starts_on_the_stack_of_a_waiting_one() {
    let _limit = time_limit();
    for threads in [1, 2, 3] {
        let lanes = lanes(Backend::Rayon, threads);
        let queued = Arc::new(Barrier::new(2));
        // Each job waits again and again, while the others are in the queue.
        let job = || {
            nested(|| {
                for _ in 0..20 {
                    rayon::scope(|scope| {
                        for _ in 0..4 {
                            scope.spawn(|_| {
                                rayon::join(|| std::hint::black_box(1), std::thread::yield_now);
                            });
                        }
                    });
                }
            })
            .0
        };
        let first = {
            let queued = queued.clone();
            lanes.cpu.spawn_cpu(move || {
                queued.wait();
                job()
            })
        };
        let others: Vec<_> = (0..1000).map(|_| lanes.cpu.spawn_cpu(job)).collect();
        queued.wait();
        assert_eq!(first.wait().unwrap(), 0);
        for other in others {
            assert_eq!(other.wait().unwrap(), 0, "a job started inside another");
        }
    }
}

/// At size 1 too: the only worker waits for *another* pool, and what is queued
/// stays queued although no other worker is there to run it. Afterwards all of it
/// runs.
#[test]
fn a_worker_that_waits_for_another_pool_starts_nothing() {
    let _limit = time_limit();
    let lanes = lanes(Backend::Rayon, 1);
    let other = cpu_lane(Backend::Rayon, 1, lanes.io.handle());
    let (inside, is_inside) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let over = Arc::new(AtomicBool::new(false));
    let waiting = {
        let other = other.handle();
        let over = over.clone();
        lanes.cpu.spawn_cpu(move || {
            other
                .install(move || {
                    inside.send(()).unwrap();
                    wait.recv().unwrap();
                })
                .unwrap();
            over.store(true, SeqCst);
        })
    };
    is_inside.recv().unwrap();
    let queued: Vec<_> = (0..1000)
        .map(|_| {
            let over = over.clone();
            lanes.cpu.spawn_cpu(move || over.load(SeqCst))
        })
        .collect();
    go.send(()).unwrap();
    waiting.wait().unwrap();
    for job in queued {
        assert!(job.wait().unwrap(), "it started while the other waited");
    }
}

/// The only worker that looks for work waits inside a closure that is no job
/// of ours, so it takes the lane's drain job and may not run it. When its wait is
/// over it goes back to rayon, which knows of no job: the drain job has to come
/// again.
#[test]
fn a_drain_job_taken_by_a_waiting_worker_comes_again() {
    let _limit = time_limit();
    let lanes = lanes(Backend::Rayon, 2);
    for _ in 0..200 {
        let (go, wait) = mpsc::channel::<()>();
        let (waits, is_waiting) = mpsc::channel();
        let native = {
            let handle = lanes.cpu.handle();
            std::thread::spawn(move || {
                handle.install(|| {
                    rayon::scope(|scope| {
                        let (child_runs, wait_for_child) = mpsc::channel();
                        scope.spawn(move |_| {
                            child_runs.send(()).unwrap();
                            wait.recv().unwrap();
                        });
                        wait_for_child.recv().unwrap();
                        waits.send(()).unwrap();
                    });
                })
            })
        };
        is_waiting.recv().unwrap();
        let job = lanes.cpu.spawn_cpu(|| 5);
        // Now, or as soon as it has taken the drain job: both have to end well.
        std::thread::yield_now();
        go.send(()).unwrap();
        assert_eq!(job.wait().unwrap(), 5);
        native.join().unwrap().unwrap();
    }
}

/// A lane that is never empty still lets rayon's own work run.
#[test]
fn a_busy_lane_does_not_starve_rayon() {
    let _limit = time_limit();
    for threads in [1, 2] {
        let lanes = lanes(Backend::Rayon, threads);
        let done = Arc::new(AtomicBool::new(false));
        // Each job submits the next, so that the queue is never empty.
        fn chain(done: Arc<AtomicBool>) {
            if !done.load(SeqCst) {
                twolane::spawn_cpu(move || chain(done)).detach();
            }
        }
        for _ in 0..2 * threads {
            let done = done.clone();
            lanes.cpu.spawn_cpu(move || chain(done)).detach();
        }
        let (sent, received) = mpsc::channel();
        lanes
            .cpu
            .spawn_cpu(move || rayon::spawn(move || sent.send("native").unwrap()))
            .wait()
            .unwrap();
        assert_eq!(received.recv().unwrap(), "native");
        assert_eq!(lanes.cpu.install(|| 3).unwrap(), 3);
        done.store(true, SeqCst);
    }
}
