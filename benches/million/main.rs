//! What does a million of them cost? (S4)
//!
//! A million closures that wait for a thread, and a million futures that wait for something else:
//! memory each, and the time from the first submission to the last result awaited. Each computes
//! the sum of two `u64` that it captures; all results are checked.
//!
//! # The cases
//!
//! - *Queued*: each thread of the lane is in a job that waits at a gate. A million
//!   closures are submitted, memory is read, the gate opens, and all are awaited.
//!   twolane's `spawn_cpu`; Tokio's `spawn_blocking` with as many threads as there are
//!   cores; a rayon pool with `async_task` for the output.
//! - *Parked*: a million futures, each polled once and then waiting for its waker,
//!   which it leaves in a place of its own. When the last one has come, memory is
//!   read, all are woken, and all are awaited. twolane's `spawn`; `tokio::spawn`;
//!   goroutines that wait on one channel, which is closed.
//!
//! Every contender runs in a process of its own, so that its memory is its alone.
//! All have as many threads as there are cores, up before the first reading; the
//! submitter is a plain thread (Go's is a goroutine: there is nothing else).
//!
//! # What is counted
//!
//! *B each*, *MB*: resident memory (`VmRSS`) with all of them waiting, less what it was before the
//! first was submitted: with the handles that the submitter holds (in Go a `u64` for the result),
//! with what a parked one leaves where it waits (an `AtomicWaker`, a `sudog`), and with what the
//! allocator kept of the way there.
//!
//! *Wall* includes the two readings; *CPU* is of all threads. twolane's are nice: with more than a
//! trifle in *others*, compare CPU.
//!
//! # What it does not measure
//!
//! Threads of the operating system, other allocators, jobs that hold more than 16 bytes, deep
//! futures and stacks, work, few jobs (`offload`), more than one submitter.
//!
//! ```text
//! cargo bench --bench million                # a minute; 4 GB of memory free
//! cargo bench --bench million -- parked      # the parked alone
//! ```
//!
//! It needs Linux's `/proc`.

mod lot;
mod meter;

use std::future::Future;
use std::process::ExitCode;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use twolane_benches::go::Go;
use twolane_benches::watchdog::Watchdog;
use twolane_benches::{Bench, Column, Contender, Contest, bounded_runtime, child, cores, lane};

use crate::lot::Lot;
use crate::meter::{Measured, Meter};

/// What the process of a contender is asked to do.
#[derive(Serialize, Deserialize)]
struct Role {
    contender: String,
    count: usize,
}

const CONTENDERS: [&str; 6] = [
    "queued/twolane spawn_cpu",
    "queued/tokio spawn_blocking",
    "queued/rayon and async-task",
    "parked/twolane spawn",
    "parked/tokio tasks",
    GO,
];
const GO: &str = "parked/goroutines";

/// After which a process of `count` is taken to hang, and ends itself. Generous: a
/// busy machine may be slow.
fn bound(count: usize) -> Duration {
    Duration::from_secs(30) + count as u32 * Duration::from_micros(100)
}

fn main() -> ExitCode {
    if !cfg!(target_os = "linux") {
        println!("million: can't be measured here: resident memory is read from Linux's /proc");
        return ExitCode::SUCCESS;
    }
    if let Some(Role { contender, count }) = child::role() {
        // Until the end: without an owner it rests.
        let watchdog = Watchdog::start();
        watchdog.allow(contender.clone(), bound(count));
        child::answer(&run(&contender, count));
    }
    let bench = Bench::new("million");
    let count = bench.pick([2_000, 50_000, 1_000_000, 1_000_000]);
    let go = Go::new("million");
    let go = &go;
    let contenders = CONTENDERS.map(|name| {
        Contender::new(name, move || {
            let contender = name.to_owned();
            let found: Measured = match name {
                GO => go.run(&[
                    "-case=parked".to_owned(),
                    format!("-count={count}"),
                    format!("-bound={}ms", bound(count).as_millis()),
                ])?,
                _ => child::ask(&Role { contender, count })?,
            };
            Ok(found.sample())
        })
    });
    let contest = Contest::new(&bench, contenders, [1, 1, 1, 5], 2 * bound(count));
    contest.report(|report| {
        for (prefix, title) in [
            ("queued/", "closures that are queued"),
            ("parked/", "futures that are parked"),
        ] {
            report.table(
                &format!("{count} {title}"),
                prefix,
                &[
                    Column::median("B each", "resident_each"),
                    Column::median("MB", "resident"),
                    Column::median("submit s", "submit"),
                    Column::spread("wall s", "wall"),
                    Column::spread("CPU s", "cpu"),
                ],
            );
        }
        report.ratios(
            "
            bytes_queued_over_spawn_blocking: resident of queued/twolane spawn_cpu / queued/tokio spawn_blocking
            bytes_queued_over_async_task: resident of queued/twolane spawn_cpu / queued/rayon and async-task
            bytes_parked_over_tokio_task: resident of parked/twolane spawn / parked/tokio tasks
            bytes_over_goroutine: resident of parked/twolane spawn / parked/goroutines
            cpu_queued_over_spawn_blocking: cpu of queued/twolane spawn_cpu / queued/tokio spawn_blocking
            cpu_queued_over_async_task: cpu of queued/twolane spawn_cpu / queued/rayon and async-task
            cpu_parked_over_tokio_task: cpu of parked/twolane spawn / parked/tokio tasks
            cpu_parked_over_go: cpu of parked/twolane spawn / parked/goroutines
            ",
        );
    })
}

/// A job of 16 bytes.
type Job = (u64, u64);
/// What holds a thread of a lane.
type Hold = Box<dyn FnOnce() + Send>;

fn jobs(count: usize) -> impl ExactSizeIterator<Item = Job> {
    (0..count).map(|n| (n as u64, 2 * n as u64))
}

fn compute((a, b): Job) -> u64 {
    a + b
}

fn run(contender: &str, count: usize) -> Measured {
    // The runtime that awaits. As the blocking pool's threads are held, there are as many of
    // them as of every contender's.
    let io = &bounded_runtime(cores());
    let tasks = |hold: Hold| drop(io.spawn(async { hold() }));
    match contender {
        "queued/tokio spawn_blocking" => {
            let blocking = |hold: Hold| drop(io.spawn_blocking(hold));
            let submit = |job| io.spawn_blocking(move || compute(job));
            queued(io, count, &blocking, submit, Result::unwrap)
        }
        "queued/rayon and async-task" => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(cores()).build();
            // So that a job holds a pointer to it, and no count.
            let pool: &'static _ = Box::leak(Box::new(pool.unwrap()));
            let schedule = |job: async_task::Runnable| pool.spawn(|| _ = job.run());
            let submit = |job| {
                let (job, task) = async_task::spawn(async move { compute(job) }, schedule);
                job.schedule();
                task
            };
            queued(io, count, &|hold| pool.spawn(hold), submit, |sum| sum)
        }
        "parked/tokio tasks" => {
            let submit = |lot: &'static Lot, place, job| {
                io.spawn(async move {
                    lot.park(place).await;
                    compute(job)
                })
            };
            parked(io, count, &tasks, submit, Result::unwrap)
        }
        ours => {
            let cpu = lane(io.handle(), |lane| lane.worker_threads(cores()));
            let hold = |hold: Hold| cpu.spawn_cpu(hold).detach();
            if ours.starts_with("queued/") {
                let submit = |job| cpu.spawn_cpu(move || compute(job));
                return queued(io, count, &hold, submit, Result::unwrap);
            }
            let submit = |lot: &'static Lot, place, job| {
                cpu.spawn(async move {
                    lot.park(place).await;
                    compute(job)
                })
            };
            parked(io, count, &hold, submit, Result::unwrap)
        }
    }
}

/// Each thread of a lane is in a job that waits. They go on when that is called.
fn close(hold: &dyn Fn(Hold)) -> impl FnOnce() + use<> {
    let gate = Arc::new(Barrier::new(cores() + 1));
    for _ in 0..cores() {
        let gate = gate.clone();
        hold(Box::new(move || {
            // Here, and on again.
            gate.wait();
            gate.wait();
        }));
    }
    gate.wait();
    move || _ = gate.wait()
}

/// Closures behind jobs that hold all threads.
fn queued<T: Future>(
    io: &Runtime,
    count: usize,
    hold: &dyn Fn(Hold),
    submit: impl Fn(Job) -> T,
    output: fn(T::Output) -> u64,
) -> Measured {
    let open = close(hold);
    let mut meter = Meter::start(count);
    let mut handles = Vec::with_capacity(count);
    handles.extend(jobs(count).map(submit));
    meter.all_submitted();
    meter.all_wait();
    open();
    await_all(io, handles, output);
    meter.end()
}

/// Futures that have been polled and wait to be woken.
fn parked<T: Future>(
    io: &Runtime,
    count: usize,
    hold: &dyn Fn(Hold),
    submit: impl Fn(&'static Lot, usize, Job) -> T,
    output: fn(T::Output) -> u64,
) -> Measured {
    // So that all threads are there.
    close(hold)();
    let mut meter = Meter::start(count);
    let lot = Lot::new(count);
    let mut handles = Vec::with_capacity(count);
    handles.extend(
        jobs(count)
            .enumerate()
            .map(|(place, job)| submit(lot, place, job)),
    );
    meter.all_submitted();
    lot.wait_until_full();
    meter.all_wait();
    lot.open();
    await_all(io, handles, output);
    meter.end()
}

fn await_all<T: Future>(io: &Runtime, handles: Vec<T>, output: fn(T::Output) -> u64) {
    let count = handles.len();
    let sum = io.block_on(async {
        let mut sum = 0;
        for handle in handles {
            sum += output(handle.await);
        }
        sum
    });
    assert_eq!(sum, jobs(count).map(compute).sum::<u64>());
}
