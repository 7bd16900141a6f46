//! On `Backend::Runtime` drain tasks pop the jobs, beside the tasks that jobs spawn with
//! `tokio::spawn` inside `in_cpu_context`: does each get a thread when there is one?

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier, mpsc};

use crate::support::{Stuck, lanes, thread_name, time_limit};
use futures::future::{BoxFuture, FutureExt};
use twolane::{Backend, Handle, JoinError, Priority, Task, in_cpu_context};

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

/// Not always: Tokio does not notify a worker that is just about to sleep.
fn gets_the_other_thread(spawn: fn(&Handle, BoxFuture<'static, bool>) -> Task<bool>) {
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
        let outer = spawn(&lanes.cpu.handle(), outer.boxed());
        // So many that the other thread has had a core, whatever else runs.
        for _ in 0..20_000 {
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

/// Tokio brings another thread for the only one, which gets jobs as well: a thread of the
/// lane.
#[test]
fn a_job_in_the_cpu_context_may_wait_in_place_for_a_later_one() {
    waits_in_place_for_a_later_one(|lane, wait| lane.spawn(in_cpu_context(async { wait() })))
        .for_each(|(thread, _)| assert!(thread.starts_with("cpu-"), "{thread}"));
}

/// Otherwise it is a thread of the I/O runtime's blocking pool, which serves the lane as
/// the lane's own do.
#[test]
fn a_closure_may_wait_in_place_for_a_later_one() {
    waits_in_place_for_a_later_one(|lane, wait| lane.spawn_cpu(wait))
        .for_each(|(_, handle)| assert_eq!(handle.unwrap().priority(), Priority::Low));
}

type Wait = Box<dyn FnOnce() -> usize + Send>;

/// Returns the threads and the current handles of the later jobs.
fn waits_in_place_for_a_later_one(
    submit: fn(&Handle, Wait) -> Task<usize>,
) -> impl Iterator<Item = (String, Option<Handle>)> {
    let _limit = time_limit();
    let lanes = lanes(Backend::Runtime, 1);
    let cpu = lanes.cpu.handle().with_priority(Priority::Low);
    let mut all = Vec::new();
    for n in 0..100 {
        let (done, is_done) = mpsc::channel();
        let wait = move || tokio::task::block_in_place(|| is_done.recv().unwrap());
        let waits = submit(&cpu, Box::new(wait));
        let later: Vec<_> = (0..3)
            .map(|_| {
                let done = done.clone();
                cpu.spawn_cpu(move || {
                    let _ = done.send(n);
                    (thread_name(), Handle::try_current().ok())
                })
            })
            .collect();
        assert_eq!(waits.wait().unwrap(), n);
        all.extend(later.into_iter().map(|later| later.wait().unwrap()));
    }
    lanes.cpu.shutdown().wait();
    all.into_iter()
}

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

/// What a job spawns in the CPU context is polled before the next job, which may take
/// long, since another thread can't take it.
#[test]
fn what_a_job_spawns_with_tokio_goes_before_the_next() {
    let _limit = time_limit();
    let lanes = lanes(Backend::Runtime, 2);
    let (other, let_go) = Stuck::start(&lanes.cpu.handle()).split();
    for _ in 0..100 {
        let (ran, has_run) = mpsc::channel();
        let spawns = async move { drop(tokio::spawn(async move { ran.send(()) })) };
        lanes.cpu.spawn(in_cpu_context(spawns)).detach();
        let next = lanes.cpu.spawn_cpu(move || has_run.recv().is_ok());
        assert!(next.wait().unwrap());
    }
    let_go.send(()).unwrap();
    other.wait().unwrap();
}

/// The I/O runtime can be dropped before the lane, though its blocking pool may have
/// some of the lane's workers.
#[test]
fn a_wait_in_place_does_not_keep_the_io_runtime_from_ending() {
    let _limit = time_limit();
    for threads in [1, 2] {
        let lanes = lanes(Backend::Runtime, threads);
        for _ in 0..20 {
            let all = Arc::new(Barrier::new(threads + 1));
            let meets = |all: &Arc<Barrier>| {
                let all = all.clone();
                lanes.cpu.spawn_cpu(move || {
                    tokio::task::block_in_place(|| all.wait());
                })
            };
            let jobs: Vec<_> = (0..=threads).map(|_| meets(&all)).collect();
            jobs.into_iter().for_each(|job| job.wait().unwrap());
        }
        let refused = |error: JoinError| assert!(error.is_io_runtime_gone(), "{error}");
        let waits = lanes.cpu.handle().with_priority(Priority::Low).admit();
        drop(lanes.io);
        refused(lanes.cpu.spawn_cpu(|| ()).wait().unwrap_err());
        refused(waits.wait().unwrap_err());
        lanes.cpu.shutdown().wait();
    }
}
