//! The tasks of the dedicated runtime that fetch the lane's jobs
//! (`src/backend/fetcher.rs`): is there one whenever a thread could run a job?

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;

use support::{lanes, time_limit};
use twolane::{Backend, Handle};

/// Tokio keeps the latest task of a worker's own for that worker: a fetcher must
/// not be that one.
#[test]
fn a_job_of_a_job_that_computes_gets_the_other_thread() {
    let _limit = time_limit();
    let lanes = lanes(Backend::Runtime, 2);
    for n in 0..100 {
        let outer = lanes.cpu.spawn_cpu(move || {
            let (done, is_done) = mpsc::channel();
            twolane::spawn_cpu(move || done.send(n).unwrap()).detach();
            is_done.recv().unwrap()
        });
        assert_eq!(outer.wait().unwrap(), n);
    }
}

/// Tokio brings another thread for the only one: with a fetcher for it.
#[test]
fn a_job_may_wait_in_place_for_a_later_one() {
    let _limit = time_limit();
    let lanes = lanes(Backend::Runtime, 1);
    for n in 0..100 {
        let (done, is_done) = mpsc::channel();
        let waits = lanes
            .cpu
            .spawn_cpu(move || tokio::task::block_in_place(|| is_done.recv().unwrap()));
        // More than one: the first could be the fetcher's next.
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
                over.store(true, SeqCst);
                had.send(()).unwrap();
            });
        }
    });
    spawned.wait().unwrap();
    has_had.recv().unwrap();
}

/// Tokio gives each poll of a task a budget of 128 operations. A closure is
/// polled once, and so are those before it on the same fetcher.
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
