//! On `Backend::Runtime` a job is a Tokio task beside those that jobs spawn with
//! Tokio's own means: does each get a thread when there is one?

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};

use crate::support::{Stuck, lanes, time_limit};
use twolane::{Backend, Handle};

/// Tokio keeps the latest task of a worker's own for that worker: a job must not be
/// that one.
#[test]
fn a_job_of_a_job_that_computes_gets_the_other_thread() {
    gets_the_other_thread(|spawn| spawn());
}

/// Nor if the job has entered another runtime meanwhile.
#[test]
fn so_it_does_from_within_another_runtimes_context() {
    gets_the_other_thread(|spawn| {
        let io = twolane::Handle::current().io_handle().clone();
        let _other = io.enter();
        spawn();
    });
}

/// Not always: Tokio does not tell a worker that is just about to sleep.
fn gets_the_other_thread(within: fn(&dyn Fn())) {
    let _limit = time_limit();
    let lanes = lanes(Backend::Runtime, 2);
    let attempt = || {
        let give_up = Arc::new(AtomicBool::new(false));
        let outer = lanes.cpu.spawn_cpu({
            let give_up = give_up.clone();
            move || {
                let has_run = Arc::new(AtomicBool::new(false));
                within(&|| {
                    let has_run = has_run.clone();
                    twolane::spawn_cpu(move || has_run.store(true, SeqCst)).detach();
                });
                while !has_run.load(SeqCst) {
                    if give_up.load(SeqCst) {
                        return false;
                    }
                    std::thread::yield_now();
                }
                true
            }
        });
        for _ in 0..5_000 {
            if outer.is_finished() {
                break;
            }
            lanes.cpu.spawn_io(async {}).wait().unwrap();
        }
        give_up.store(true, SeqCst);
        outer.wait().unwrap()
    };
    let gets_it = (0..100).filter(|_| attempt()).count();
    assert!(gets_it > 80, "{gets_it} of 100");
}

/// Tokio brings another thread for the only one, which gets jobs as well.
#[test]
fn a_job_may_wait_in_place_for_a_later_one() {
    let _limit = time_limit();
    let lanes = lanes(Backend::Runtime, 1);
    for n in 0..100 {
        let (done, is_done) = mpsc::channel();
        let waits = lanes
            .cpu
            .spawn_cpu(move || tokio::task::block_in_place(|| is_done.recv().unwrap()));
        let later: Vec<_> = (0..3)
            .map(|_| {
                let done = done.clone();
                lanes.cpu.spawn_cpu(move || {
                    let _ = done.send(n);
                })
            })
            .collect();
        assert_eq!(waits.wait().unwrap(), n);
        for later in later {
            later.wait().unwrap();
        }
    }
}

/// What a future spawns with Tokio's own means gets its turn in a lane that is
/// never empty.
#[test]
fn tokios_own_tasks_get_their_turn() {
    fn again(lane: &Handle, over: &Arc<AtomicBool>) {
        if !over.load(SeqCst) {
            let (next, over) = (lane.clone(), over.clone());
            lane.spawn_cpu(move || again(&next, &over)).detach();
        }
    }
    let _limit = time_limit();
    let lanes = lanes(Backend::Runtime, 1);
    let over = Arc::new(AtomicBool::new(false));
    // Two chains: when one runs, the other is queued.
    again(&lanes.cpu.handle(), &over);
    again(&lanes.cpu.handle(), &over);
    let (had, has_had) = mpsc::channel();
    let spawned = lanes.cpu.spawn({
        let over = over.clone();
        async move {
            tokio::spawn(async move {
                // Else it would be polled next, from the LIFO slot.
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                over.store(true, SeqCst);
                had.send(()).unwrap();
            });
        }
    });
    spawned.wait().unwrap();
    has_had.recv().unwrap();
}

/// Tokio gives each poll of a task a budget of 128 operations, and a closure has
/// one poll.
#[test]
fn closures_that_block_on_tokios_resources_do_not_run_out_of_budget() {
    const OPERATIONS: usize = 300;
    let _limit = time_limit();
    let lanes = lanes(Backend::Runtime, 1);
    for _ in 0..3 {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        for n in 0..OPERATIONS {
            sender.send(n).unwrap();
        }
        let received = lanes.cpu.spawn_cpu(move || {
            let all = async { while receiver.recv().await != Some(OPERATIONS - 1) {} };
            futures::executor::block_on(all);
        });
        received.wait().unwrap();
    }
}

/// What a closure spawns or wakes is polled before the next job, which may take
/// long, and can't be had by another thread.
#[test]
fn what_a_job_spawns_with_tokio_goes_before_the_next() {
    let _limit = time_limit();
    let lanes = lanes(Backend::Runtime, 2);
    let (other, let_go) = Stuck::start(&lanes.cpu.handle()).split();
    for _ in 0..100 {
        let (ran, has_run) = mpsc::channel();
        lanes
            .cpu
            .spawn_cpu(move || drop(tokio::spawn(async move { ran.send(()) })))
            .detach();
        let next = lanes.cpu.spawn_cpu(move || has_run.recv().is_ok());
        assert!(next.wait().unwrap());
    }
    let_go.send(()).unwrap();
    other.wait().unwrap();
}
