//! Does a rayon worker call the same job at the same depth of its stack, and deeper where it
//! waits inside another one?
//!
//! Relied on in `crates/core/src/pool/stack.rs` and `mod.rs`: a worker drains the lane's queue in a
//! rayon job only if that is called as deep below rayon's main loop as the ones that were
//! measured at the start. If two calls from the main loop differ in depth, drain jobs are
//! broadcast, or the workers poll the queue, and each job costs more. If a call from a wait is
//! not deeper, the lane starts a job on the stack of one that waits, which ends after it, and
//! may wait for ever.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Barrier};
use std::thread;

use rayon_core::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

use crate::stack;
use crate::support::{cpu_lane, gives, lanes, time_limit};

/// A pool whose workers know where their main loop begins.
fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .spawn_handler(|worker| {
            thread::spawn(|| run(worker));
            Ok(())
        })
        .build()
        .unwrap()
}

fn run(worker: ThreadBuilder) {
    stack::mark_base();
    worker.run();
}

/// Spawns a job that sends the depth at which it runs.
#[inline(never)]
fn spawn(pool: &ThreadPool, tell: Sender<usize>) {
    pool.spawn(move || send_depth(&tell));
}

#[inline(never)]
fn spawn_broadcast(pool: &ThreadPool, tell: Sender<usize>) {
    pool.spawn_broadcast(move |_| send_depth(&tell));
}

#[inline(never)]
fn send_depth(tell: &Sender<usize>) {
    tell.send(stack::depth()).unwrap();
}

/// That of a job on a pool that has nothing else to do.
fn at_the_bottom(pool: &ThreadPool) -> usize {
    let (tell, depths) = mpsc::channel();
    spawn(pool, tell);
    depths.recv().unwrap()
}

#[test]
fn each_call_from_the_main_loop_is_at_the_same_depth() {
    const JOBS: usize = 1_000;
    let _limit = time_limit();
    for threads in [1, 2, 4] {
        let pool = Arc::new(pool(threads));
        let bottom = at_the_bottom(&pool);
        let (tell, depths) = mpsc::channel();
        for _ in 0..JOBS {
            // From elsewhere, and from a worker, where the worker or another one takes it.
            spawn(&pool, tell.clone());
            let (weak, tell) = (Arc::downgrade(&pool), tell.clone());
            pool.spawn(move || {
                let pool = weak.upgrade().unwrap();
                spawn(&pool, tell.clone());
                spawn(&pool, tell);
            });
        }
        drop(tell);
        let depths: Vec<_> = depths.iter().collect();
        assert_eq!(depths, [bottom; 3 * JOBS], "{threads} threads");

        let (tell, depths) = mpsc::channel();
        for _ in 0..JOBS {
            spawn_broadcast(&pool, tell.clone());
        }
        drop(tell);
        let depths: Vec<_> = depths.iter().collect();
        assert_eq!(depths.len(), JOBS * threads);
        assert!(depths.iter().all(|depth| *depth == depths[0]), "{depths:?}");
    }
}

#[test]
fn a_call_from_a_wait_is_deeper() {
    let _limit = time_limit();
    let pool = pool(1);
    let bottom = at_the_bottom(&pool);
    let (tell, depths) = mpsc::channel();
    // The only worker takes its latest job first.
    pool.install(|| {
        rayon_core::scope(|scope| {
            scope.spawn(|_| ());
            spawn(&pool, tell.clone());
        });
        rayon_core::join(|| spawn(&pool, tell.clone()), || ());
    });
    for wait in ["scope", "join"] {
        let depth = depths.recv().unwrap();
        assert!(depth > bottom, "in `{wait}`: {depth}, {bottom}");
    }
    // And while it waits for another pool.
    let other = self::pool(1);
    let (let_go, wait) = mpsc::channel::<()>();
    let (inside, is_inside) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            pool.install(|| {
                other.install(move || {
                    inside.send(()).unwrap();
                    wait.recv().unwrap();
                });
            });
        });
        is_inside.recv().unwrap();
        let depth = at_the_bottom(&pool);
        assert!(depth > bottom, "in `install`: {depth}, {bottom}");
        let_go.send(()).unwrap();
    });
    assert_eq!(at_the_bottom(&pool), bottom);
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
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
    for threads in [1, 2, 3] {
        let lanes = lanes(threads);
        let queued = Arc::new(Barrier::new(2));
        // Each job waits again and again, while the others are in the queue.
        let job = || {
            nested(|| {
                for _ in 0..20 {
                    rayon_core::scope(|scope| {
                        for _ in 0..4 {
                            scope.spawn(|_| {
                                rayon_core::join(|| std::hint::black_box(1), thread::yield_now);
                            });
                        }
                    });
                }
            })
            .0
        };
        let are_queued = queued.clone();
        let first = lanes.cpu.spawn_cpu(move || {
            are_queued.wait();
            job()
        });
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
    let lanes = lanes(1);
    let other = cpu_lane(1, lanes.io.handle());
    let (inside, is_inside) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let over = Arc::new(AtomicBool::new(false));
    let stays = move || {
        inside.send(()).unwrap();
        wait.recv().unwrap();
    };
    let (of_other, ends) = (other.handle().clone(), over.clone());
    let waiting = lanes.cpu.spawn_cpu(move || {
        of_other.install(stays).unwrap();
        ends.store(true, SeqCst);
    });
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
    let lanes = lanes(2);
    for _ in 0..200 {
        let (go, wait) = mpsc::channel::<()>();
        let (waits, is_waiting) = mpsc::channel();
        let stays = move || {
            rayon_core::scope(|scope| {
                let (child_runs, wait_for_child) = mpsc::channel();
                scope.spawn(move |_| {
                    child_runs.send(()).unwrap();
                    wait.recv().unwrap();
                });
                wait_for_child.recv().unwrap();
                waits.send(()).unwrap();
            });
        };
        let handle = lanes.cpu.handle().clone();
        let native = thread::spawn(move || handle.install(stays));
        is_waiting.recv().unwrap();
        let job = lanes.cpu.spawn_cpu(gives(5));
        // Now, or as soon as it has taken the drain job: both have to end well.
        thread::yield_now();
        go.send(()).unwrap();
        assert_eq!(job.wait().unwrap(), 5);
        native.join().unwrap().unwrap();
    }
}
