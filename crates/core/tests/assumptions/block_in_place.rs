//! Which thread gets the worker of a task that blocks in place?
//!
//! Relied on in `crates/core/src/pool/tokio/drain_task.rs` (`send_worker_back`): a thread of the
//! blocking pool of the *current* runtime, which need not be the runtime of the worker. In a
//! job that is the I/O runtime. A drain task on that thread runs no job: it blocks in place
//! inside the worker's own runtime, which gives the worker to a thread of the lane. The drop of
//! the I/O runtime waits for a worker that is parked on its thread, so that drop closes the
//! lane. If Tokio takes a thread of the worker's own runtime, that code is never used and can
//! go. If it takes yet another one, the drop of a runtime waits for ever.

use std::sync::{Arc, Barrier, mpsc};

use crate::support::{lanes, thread_name, time_limit};
use tokio::runtime::{Builder, Runtime};
use tokio::task::block_in_place;
use twolane_core::{Backend, Handle, JoinError, JoinErrorKind, Priority, Task, in_cpu_context};

fn of_one_worker(name: &str) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(name)
        .build()
        .unwrap()
}

#[test]
fn one_of_the_current_runtime() {
    let _limit = time_limit();
    let (io, cpu) = (of_one_worker("io"), of_one_worker("cpu"));
    for (current, name) in [(&io, "io"), (&cpu, "cpu")] {
        // Of the runtime's own thread, which blocks, and of the one that has its worker then.
        let (current, own) = (current.handle().clone(), cpu.handle().clone());
        let blocks = cpu.spawn(async move {
            let _current = current.enter();
            block_in_place(|| {
                let (tell, told) = mpsc::channel();
                own.spawn(async move { tell.send(thread_name()).unwrap() });
                told.recv().unwrap()
            })
        });
        let (tell, told) = mpsc::channel();
        cpu.spawn(async move { tell.send(blocks.await.unwrap()).unwrap() });
        assert_eq!(told.recv().unwrap(), name);
    }
    // The other way round `io` would wait for the worker of `cpu`, which it has.
    drop(cpu);
    drop(io);
}

/// Tokio brings another thread for the only one, which gets jobs as well: a thread of the
/// lane's own runtime.
#[test]
fn a_job_in_the_cpu_context_may_wait_in_place_for_a_later_one() {
    waits_in_place_for_a_later_one(|lane, wait| lane.spawn(in_cpu_context(async { wait() })))
        .for_each(|(thread, _)| assert!(thread.starts_with("cpu-"), "{thread}"));
}

/// Otherwise it is a thread of the I/O runtime's blocking pool, which runs no job: the worker
/// goes on to a thread of the lane.
#[test]
fn a_closure_may_wait_in_place_for_a_later_one() {
    waits_in_place_for_a_later_one(|lane, wait| lane.spawn_cpu(wait)).for_each(
        |(thread, handle)| {
            assert!(thread.starts_with("cpu-"), "{thread}");
            assert_eq!(handle.unwrap().priority(), Priority::Low);
        },
    );
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
        let wait = move || block_in_place(|| is_done.recv().unwrap());
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
                    block_in_place(|| all.wait());
                })
            };
            let jobs: Vec<_> = (0..=threads).map(|_| meets(&all)).collect();
            jobs.into_iter().for_each(|job| job.wait().unwrap());
        }
        let refused =
            |error: JoinError| assert_eq!(error.kind(), JoinErrorKind::IoRuntimeGone, "{error}");
        let waits = lanes.cpu.handle().with_priority(Priority::Low).reserve();
        drop(lanes.io);
        refused(lanes.cpu.spawn_cpu(|| ()).wait().unwrap_err());
        refused(waits.wait().unwrap_err());
        lanes.cpu.shutdown().wait();
    }
}
