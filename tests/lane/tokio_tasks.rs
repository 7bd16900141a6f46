//! On `Backend::Runtime` drain tasks pop the jobs, beside the tasks that jobs spawn with
//! `tokio::spawn` inside `in_cpu_context`: do these get their turn?
//!
//! (`tests/assumptions` has which worker polls which task, and where a worker goes that blocks
//! in place.)

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};

use crate::support::{lanes, time_limit};
use twolane::{Backend, Handle, in_cpu_context};

/// What a future spawns in the CPU context gets its turn in a lane that is never empty.
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
    let spawns = async move {
        tokio::spawn(async move {
            // Else it would be polled next, from the LIFO slot.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            over.store(true, SeqCst);
            had.send(()).unwrap();
        });
    };
    lanes.cpu.spawn(in_cpu_context(spawns)).wait().unwrap();
    has_had.recv().unwrap();
}

/// Tokio gives each poll of a task a budget of 128 operations, and a closure runs in one
/// poll of a drain task.
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
