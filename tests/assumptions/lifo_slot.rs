//! Which task does a worker of Tokio's keep to itself?
//!
//! Relied on in `core/src/pool/tokio.rs` (`notify`): only the latest that was spawned on it (the
//! LIFO slot), which it polls next. Another worker can take any other. So the lane spawns an
//! empty task after a drain task, and a drain task lets what a job has spawned go before the
//! next job. If a worker keeps more than one task, a job that is submitted by a job that
//! computes waits for the end of that computation, while another worker sleeps. Once other
//! workers can take the latest task too, the empty one can go.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};

use crate::support::{Stuck, lanes, time_limit};
use twolane::{Backend, Handle, Task, in_cpu_context};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Tokio keeps the latest task of a worker's own for that worker: the drain task of a
/// job must not be that one.
#[test]
fn a_job_of_a_job_that_computes_gets_the_other_thread() {
    gets_the_other_thread(|cpu, outer| cpu.spawn(outer));
}

/// The same where Tokio's current runtime is that of the drain task.
#[test]
fn so_it_does_from_within_the_cpu_context() {
    gets_the_other_thread(|cpu, outer| cpu.spawn(in_cpu_context(outer)));
}

/// Not each time: Tokio does not notify a worker that is just about to sleep. Where the drain task
/// is the latest, it never does.
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
                let nested = twolane::spawn_cpu(move || runs.store(true, SeqCst));
                while !has_run.load(SeqCst) || !nested.is_finished() {
                    if gives_up.load(SeqCst) {
                        return false;
                    }
                    std::thread::yield_now();
                }
            }
            true
        };
        let outer = spawn(&lanes.cpu.handle(), Box::pin(outer));
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
    assert!((0..100).any(|_| attempt()));
}

/// What a job spawns in the CPU context is polled before the next job, which may take
/// long, since another thread can't take it.
#[test]
fn what_a_job_spawns_with_tokio_goes_before_the_next() {
    let _limit = time_limit();
    let lanes = lanes(Backend::Runtime, 2);
    let other = Stuck::start(&lanes.cpu.handle());
    for _ in 0..100 {
        let (ran, has_run) = mpsc::channel();
        let spawns = async move { drop(tokio::spawn(async move { ran.send(()) })) };
        lanes.cpu.spawn(in_cpu_context(spawns)).detach();
        let next = lanes.cpu.spawn_cpu(move || has_run.recv().is_ok());
        assert!(next.wait().unwrap());
    }
    other.end();
}
