//! What does a million of them cost?
//!
//! A million closures that wait for a thread, and a million futures that wait
//! for something else: memory each, and the time from the first submission to
//! the last result awaited. Each computes the sum of two `u64` that it
//! captures; all results are checked.
//!
//! # The cases
//!
//! - *Queued*: each thread of the lane is in a job that waits at a gate. A
//!   million closures are submitted, memory is read, the gate opens, and all
//!   are awaited. twolane's `spawn_cpu` on both backends; Tokio's
//!   `spawn_blocking` with as many threads as there are cores; a rayon pool
//!   with `async_task` for the output; tasks of a Tokio runtime whose workers
//!   are held.
//! - *Parked*: a million futures, each polled once and then waiting for its
//!   waker, which it leaves in a place of its own. When the last one has come,
//!   memory is read, all are woken, and all are awaited. twolane's `spawn` on
//!   both backends; `tokio::spawn`; goroutines that wait on one channel, which
//!   is closed; threads of the operating system that are parked.
//! - *Sleeping*: as in the published figures for threads and goroutines, each
//!   sleeps for a second, by `tokio::time::sleep` or `time.Sleep`. This is
//!   mostly about timers: on twolane's Rayon backend they are the I/O runtime's.
//!
//! Every contender runs in a process of its own, so that its memory is its
//! alone; round by round, in a rotating order. All have as many threads as
//! there are cores, up before the first reading; the submitter is a plain
//! thread (Go's is a goroutine: there is nothing else).
//!
//! # What is counted
//!
//! *B each*, *MB*: resident memory (`VmRSS`) with all of them waiting, less
//! what it was before the first was submitted. What the submitter holds to
//! await a job is a part of what the job costs, and counted: the handles, in a
//! `Vec` with the right capacity; in Go a `u64` each, for the result. So is
//! what a parked one leaves where it waits: an `AtomicWaker` here, a `sudog`
//! in Go. And so is what the allocator kept of the way there: the queue of
//! futures that were submitted faster than they were polled.
//! Of those that sleep the peak is given (`VmHWM`), and no bytes each:
//! where the submission takes longer than a second, the first have ended before
//! the last begin, and so a million are never there at once.
//!
//! *Allocs*, *B asked*: calls of the allocator for each and bytes asked of it,
//! up to the same moment (for sleepers: to the end), by counting. A queue that
//! grows by doubling counts with each of its sizes. Go's allocator is not
//! counted.
//!
//! *Wall* includes the two readings; *CPU* is of all threads. twolane's are nice,
//! so that I/O comes first; beside a compiler they get what it leaves, and their
//! wall time says little. So of each run it is said how much of the machine
//! others had; with more than a trifle, compare CPU.
//!
//! No machine we know bears a million threads. They are measured at two numbers,
//! and the slope between the two is *extrapolated* to a million: optimistic,
//! since the kernel would not keep its pace.
//!
//! # What it does not measure
//!
//! The kernel's memory: a thread's kernel stack and page tables are in no
//! process's resident memory, which favours threads. Allocators other than the
//! system's. Jobs that hold more than 16 bytes; deep futures, deep stacks (a
//! goroutine's grows, and so does a future's box). Work: the jobs do none, so
//! the times are of handling alone. What a job costs when there are few: that
//! is `hop`. One submitter only.
//!
//! # How to run it
//!
//! ```text
//! cargo bench --bench million                # minutes; 4 GB of memory free
//! cargo bench --bench million -- --quick     # seconds, 50,000 each
//! cargo bench --bench million -- --only parked-tokio,parked-goroutines --rounds 3
//! ```
//!
//! It needs Linux's `/proc`, and writes `target/twolane/million.json`.

// In a program `pub` is no promise to anybody.
#![allow(unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;

mod args;
mod cases;
mod contender;
mod inside;
mod lane;
mod lot;
mod meter;
mod process;
mod ratios;
mod sample;
mod tables;

use clap::Parser;

use crate::args::{Args, Plan};
use crate::contender::Contender;
use crate::sample::Found;
use crate::support::go::Go;
use crate::support::in_turn;
use crate::support::others::Others;

#[global_allocator]
static ALLOCATOR: alloc_tracker::Allocator<std::alloc::System> = alloc_tracker::Allocator::system();

fn main() {
    if !cfg!(target_os = "linux") {
        println!("can't be measured here: resident memory is read from Linux's /proc");
        return;
    }
    let args = Args::parse();
    let plan = args.plan();
    match args.contender {
        Some(contender) => inside::run(contender, plan.count),
        None => compare(&plan),
    }
}

fn compare(plan: &Plan) {
    let [fewer, more] = plan.threads;
    println!(
        "{} cores; {} each (OS threads: {fewer} and {more}); rounds: {}",
        support::cores(),
        plan.count,
        plan.rounds,
    );
    let mut running = plan.contenders.clone();
    let mut skipped: Vec<(Contender, String)> = Vec::new();
    let go = if running.iter().any(|c| c.is_go()) {
        Go::build("million")
    } else {
        Err("not asked for".to_owned())
    };
    if let Err(why) = &go {
        let in_go = running.iter().filter(|c| c.is_go());
        skipped.extend(in_go.map(|c| (*c, why.clone())));
        running.retain(|c| !c.is_go());
    }

    let mut found = Found::default();
    for round in 0..plan.rounds {
        for turn in in_turn(running.len(), round) {
            let contender = running[turn];
            if skipped.iter().any(|(c, _)| *c == contender) {
                continue;
            }
            let others = Others::since_now([]);
            match process::run(contender, plan, go.as_ref().ok()) {
                Ok(mut sample) => {
                    sample.others = others.cores();
                    tables::print_run(round, contender, &sample);
                    found.add(contender, sample);
                }
                Err(why) => {
                    println!("{contender}: skipped, {why}");
                    skipped.push((contender, why));
                }
            }
        }
    }

    tables::print(plan, &skipped, &found);
    let ratios = ratios::of(&found);
    tables::print_ratios(&ratios);
    tables::write(plan, &skipped, &found, &ratios);
}
