//! Does the job of a job that computes get another thread? (`tests/assumptions/lifo_slot.rs` says
//! why it might not.)

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::support::{lanes, time_limit};
use twolane_core::{Backend, Handle, Task, in_cpu_context};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Tokio keeps the latest task of a worker's own for that worker: the drain task of a
/// job must not be that one.
#[test]
#[ignore = "counts what Tokio does: .ci/nightly"]
fn a_job_of_a_job_that_computes_gets_the_other_thread() {
    gets_the_other_thread(|cpu, outer| cpu.spawn(outer));
}

/// The same where Tokio's current runtime is that of the drain task.
#[test]
#[ignore = "counts what Tokio does: .ci/nightly"]
fn so_it_does_from_within_the_cpu_context() {
    gets_the_other_thread(|cpu, outer| cpu.spawn(in_cpu_context(outer)));
}

/// Not always: Tokio does not notify a worker that is just about to sleep. Where the drain task is
/// the latest, in about half of the attempts.
fn gets_the_other_thread(spawn: fn(&Handle, BoxFuture<bool>) -> Task<bool>) {
    let _limit = time_limit();
    let lanes = lanes(Backend::Runtime, 2);
    let attempt = || {
        let give_up = Arc::new(AtomicBool::new(false));
        let gives_up = give_up.clone();
        let outer = async move {
            // One poll, which keeps its thread. The drain task of the first has ended
            // before the second comes.
            for _ in 0..3 {
                let has_run = Arc::new(AtomicBool::new(false));
                let runs = has_run.clone();
                let nested = twolane_core::spawn_cpu(move || runs.store(true, SeqCst));
                while !has_run.load(SeqCst) || !nested.is_finished() {
                    if gives_up.load(SeqCst) {
                        return false;
                    }
                    std::thread::yield_now();
                }
            }
            true
        };
        let outer = spawn(lanes.cpu.handle(), Box::pin(outer));
        // So many that the other thread has had a core, whatever else runs.
        for _ in 0..20_000 {
            if outer.is_finished() {
                break;
            }
            lanes.cpu.handle().spawn_io(async {}).wait().unwrap();
        }
        give_up.store(true, SeqCst);
        outer.wait().unwrap()
    };
    let gets_it = (0..100).filter(|_| attempt()).count();
    assert!(gets_it > 80, "{gets_it} of 100");
}
