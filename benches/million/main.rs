//! What does a million of them cost? (S4)
//!
//! A million closures that wait for a thread, and a million futures that wait for
//! something else: memory each, and the time from the first submission to the last
//! result awaited. Each computes the sum of two `u64` that it captures; all results
//! are checked.
//!
//! # The cases
//!
//! - *Queued*: each thread of the lane is in a job that waits at a gate. A million
//!   closures are submitted, memory is read, the gate opens, and all are awaited.
//!   twolane's `spawn_cpu` on both backends; Tokio's `spawn_blocking` with as many
//!   threads as there are cores; a rayon pool with `async_task` for the output;
//!   tasks of a Tokio runtime whose workers are held.
//! - *Parked*: a million futures, each polled once and then waiting for its waker,
//!   which it leaves in a place of its own. When the last one has come, memory is
//!   read, all are woken, and all are awaited. twolane's `spawn` on both backends;
//!   `tokio::spawn`; goroutines that wait on one channel, which is closed.
//! - *Sleeping*: as in the published figures for threads and goroutines, each sleeps
//!   for a second, by `tokio::time::sleep` or `time.Sleep`. This is mostly about
//!   timers: on twolane's Rayon backend they are the I/O runtime's.
//!
//! Every contender runs in a process of its own, so that its memory is its alone.
//! All have as many threads as there are cores, up before the first reading; the
//! submitter is a plain thread (Go's is a goroutine: there is nothing else).
//!
//! # What is counted
//!
//! *B each*, *MB*: resident memory (`VmRSS`) with all of them waiting, less what it
//! was before the first was submitted. What the submitter holds to await a job is a
//! part of what the job costs, and counted: the handles, in a `Vec` with the right
//! capacity; in Go a `u64` each, for the result. So is what a parked one leaves where
//! it waits: an `AtomicWaker` here, a `sudog` in Go. And so is what the allocator
//! kept of the way there: the queue of futures that were submitted faster than they
//! were polled. Of those that sleep the peak is given (`VmHWM`), and no bytes each:
//! where the submission takes longer than a second, the first have ended before the
//! last begin, and so a million are never there at once.
//!
//! *Allocs*, *B asked*: calls of the allocator for each and bytes asked of it, up to
//! the same moment (for sleepers: to the end), by counting. A queue that grows by
//! doubling counts with each of its sizes. Go's allocator is not counted.
//!
//! *Wall* includes the two readings; *CPU* is of all threads. twolane's are nice, so
//! that I/O comes first; beside a compiler they get what it leaves, and their wall
//! time says little. With more than a trifle in *others*, compare CPU.
//!
//! # What it does not measure
//!
//! Threads of the operating system: no machine we know bears a million. Allocators other than the system's. Jobs
//! that hold more than 16 bytes; deep futures, deep stacks. Work: the jobs do none,
//! so the times are of handling alone. What a job costs when there are few
//! (`offload`). More than one submitter.
//!
//! ```text
//! cargo bench --bench million                # a minute; 4 GB of memory free
//! cargo bench --bench million -- parked      # the parked alone
//! ```
//!
//! It needs Linux's `/proc`.

mod cases;
mod lane;
mod lot;
mod meter;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use twolane::Backend;
use twolane_benches::go::Go;
use twolane_benches::watchdog::Watchdog;
use twolane_benches::{
    Bench, Column, Contender, Contest, Ratio, Report, bounded_runtime, child, cores,
};

use crate::cases::{SLEEP, parked, queued, sleeping};
use crate::lane::{AsyncTask, SpawnBlocking, Tokio, Twolane};
use crate::meter::Measured;

#[global_allocator]
static ALLOCATOR: alloc_tracker::Allocator<std::alloc::System> = alloc_tracker::Allocator::system();

/// What the process of a contender is asked to do.
#[derive(Serialize, Deserialize)]
struct Role {
    contender: String,
    count: usize,
}

type Run = fn(&Runtime, usize) -> Measured;

const RUST: [(&str, Run); 11] = [
    ("queued/twolane spawn_cpu, Rayon", |io, n| {
        queued(io, &Twolane::open(io, RAYON), n)
    }),
    ("queued/twolane spawn_cpu, Runtime", |io, n| {
        queued(io, &Twolane::open(io, RUNTIME), n)
    }),
    ("queued/tokio spawn_blocking", |io, n| {
        queued(io, &SpawnBlocking(io.handle().clone()), n)
    }),
    ("queued/rayon and async-task", |io, n| {
        queued(io, &AsyncTask::open(), n)
    }),
    ("queued/tokio tasks", |io, n| {
        queued(io, &Tokio(io.handle().clone()), n)
    }),
    ("parked/twolane spawn, Rayon", |io, n| {
        parked(io, &Twolane::open(io, RAYON), n)
    }),
    ("parked/twolane spawn, Runtime", |io, n| {
        parked(io, &Twolane::open(io, RUNTIME), n)
    }),
    ("parked/tokio tasks", |io, n| {
        parked(io, &Tokio(io.handle().clone()), n)
    }),
    ("sleeping/twolane spawn, Rayon", |io, n| {
        sleeping(io, &Twolane::open(io, RAYON), n)
    }),
    ("sleeping/twolane spawn, Runtime", |io, n| {
        sleeping(io, &Twolane::open(io, RUNTIME), n)
    }),
    ("sleeping/tokio tasks", |io, n| {
        sleeping(io, &Tokio(io.handle().clone()), n)
    }),
];
const RAYON: Backend = Backend::Rayon;
const RUNTIME: Backend = Backend::Runtime;
const GO: [&str; 2] = ["parked/goroutines", "sleeping/goroutines"];

/// After which a process of `count` is taken to hang, and ends itself. Generous: a
/// busy machine may be slow.
fn bound(count: usize) -> Duration {
    Duration::from_secs(30) + count as u32 * Duration::from_micros(100)
}

fn main() {
    if !cfg!(target_os = "linux") {
        println!("million: can't be measured here: resident memory is read from Linux's /proc");
        return;
    }
    if let Some(Role { contender, count }) = child::role() {
        // Until the end: without an owner it rests.
        let watchdog = Watchdog::start();
        watchdog.allow(contender.clone(), bound(count));
        let (_, run) = RUST.iter().find(|(name, _)| *name == contender).unwrap();
        child::answer(&run(&bounded_runtime(cores()), count));
    }
    let bench = Bench::new("million");
    let count = bench.pick([2_000, 50_000, 1_000_000, 1_000_000]);
    let go = Go::new("million");
    let mut contenders: Vec<Contender<'_>> = Vec::new();
    for (name, _) in RUST {
        contenders.push(Contender::new(name, move || {
            let contender = name.to_owned();
            let found: Measured = child::ask(&Role { contender, count })?;
            Ok(found.sample())
        }));
    }
    for name in GO {
        let go = &go;
        contenders.push(Contender::new(name, move || {
            let found: Measured = go.run(&[
                format!("-case={}", name.split('/').next().unwrap()),
                format!("-count={count}"),
                format!("-sleep={}ms", SLEEP.as_millis()),
                format!("-bound={}ms", bound(count).as_millis()),
            ])?;
            Ok(found.sample())
        }));
    }
    contenders
        .sort_by_key(|one| ["queued/", "parked/", "sleeping/"].map(|c| !one.name.starts_with(c)));
    let found = bench.run(Contest {
        contenders,
        rounds: bench.rounds([1, 1, 1, 5]),
        warm_up: false,
        ends_threads: false,
        bound: 2 * bound(count),
    });
    let Some(found) = found else { return };

    let mut report = Report::new(bench.name, &found);
    for (prefix, title) in [
        ("queued/", "closures that are queued"),
        ("parked/", "futures that are parked"),
        ("sleeping/", "futures that sleep (memory: the peak)"),
    ] {
        report.table(
            &format!("{count} {title}"),
            prefix,
            &[
                Column::median("B each", "resident_each"),
                Column::median("MB", "resident"),
                Column::median("allocs", "allocations_each"),
                Column::median("B asked", "allocated_each"),
                Column::median("submit s", "submit"),
                Column::spread("wall s", "wall"),
                Column::spread("CPU s", "cpu"),
                Column::median("others", "others"),
            ],
        );
    }
    for (name, contender) in [
        ("bytes_per_job", RUST[0].0),
        ("bytes_per_job_runtime", RUST[1].0),
        ("bytes_per_parked_future", RUST[5].0),
        ("bytes_per_parked_future_runtime", RUST[6].0),
    ] {
        report.put(name, Ratio::once(found.median(contender, "resident_each")));
    }
    report.ratios(
        "
        bytes_over_goroutine: resident of parked/twolane spawn, Rayon / parked/goroutines
        bytes_over_goroutine_runtime: resident of parked/twolane spawn, Runtime / parked/goroutines
        bytes_parked_over_tokio_task: resident of parked/twolane spawn, Rayon / parked/tokio tasks
        bytes_queued_over_spawn_blocking: resident of queued/twolane spawn_cpu, Rayon / queued/tokio spawn_blocking
        bytes_queued_over_async_task: resident of queued/twolane spawn_cpu, Rayon / queued/rayon and async-task
        wall_queued_over_spawn_blocking: wall of queued/twolane spawn_cpu, Rayon / queued/tokio spawn_blocking
        wall_queued_over_async_task: wall of queued/twolane spawn_cpu, Rayon / queued/rayon and async-task
        cpu_queued_over_spawn_blocking: cpu of queued/twolane spawn_cpu, Rayon / queued/tokio spawn_blocking
        cpu_queued_over_async_task: cpu of queued/twolane spawn_cpu, Rayon / queued/rayon and async-task
        wall_parked_over_go: wall of parked/twolane spawn, Rayon / parked/goroutines
        wall_parked_over_tokio_task: wall of parked/twolane spawn, Rayon / parked/tokio tasks
        cpu_parked_over_go: cpu of parked/twolane spawn, Rayon / parked/goroutines
        cpu_parked_over_tokio_task: cpu of parked/twolane spawn, Rayon / parked/tokio tasks
        wall_sleeping_over_go: wall of sleeping/twolane spawn, Rayon / sleeping/goroutines
        wall_sleeping_over_tokio_task: wall of sleeping/twolane spawn, Rayon / sleeping/tokio tasks
        ",
    );
    report.finish();
}
