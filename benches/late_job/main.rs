//! A small job arrives while the CPU lane has long ones queued: when is it
//! answered, and what does that cost the long ones?
//!
//! N long jobs, `fib(k)` by naive recursion, all submitted at the start; when
//! about a quarter of the time is over, small jobs, `fib(15)` (some
//! microseconds), arrive one by one. Pools that run to completion answer them
//! late; a preemptive scheduler answers soon, at the price of the total. Here
//! are both, and what twolane makes of it.
//!
//! # The contenders
//!
//! Each is a process's only load while it runs; round by round, in a rotating
//! order, with the same k and N:
//!
//! - goroutines, in a process of their own, `GOMAXPROCS` as it comes;
//! - `tokio::task::spawn_blocking` with its default limit of 512 threads
//!   (there are more long jobs than that, or the limit would play no part);
//! - a rayon pool and a oneshot by hand;
//! - tasks of a second Tokio runtime;
//! - twolane, small and long jobs alike: `spawn_cpu`;
//! - twolane, the small ones by `with_priority(Priority::High)`;
//! - twolane, all of them futures of one priority; the long ones await
//!   `yield_if_due()` after each piece of some tens of microseconds. On both
//!   backends.
//!
//! And apart from these, on both backends: 200 long futures that have all been
//! polled before the first small one arrives, and go on computing with
//! `yield_if_due()` until the last small one is answered. That is the harder
//! case: nothing long is merely queued, and what gave way comes back for more.
//!
//! And again goroutines, and twolane with the small ones High, with *sparse*
//! small jobs, each 25 ms instead of each 10. Go's answer depends on that: a
//! goroutine that gets its turn each 10 to 20 ms (its slice is 10) finds two
//! arrivals due, and the second takes the first one's place as the next to run;
//! the first then waits behind long ones, for seconds. With arrivals further
//! apart than that each is, as a rule, the next to run at once, and all that it
//! waits for is its source's turn. Neither alone would be a fair picture.
//!
//! # What is counted
//!
//! Total: from the start to the end of the last long job. Latency of a small
//! job: to its end, as it notes it itself, once **from the time at which it
//! was meant to arrive** and once from the call that submitted it. The two
//! differ by how late the source was. In Go the source is a goroutine, and when
//! all processors compute it gets its turn as late as any other, which a
//! count from the call leaves out; the first is what a client would see.
//! For the Rust contenders also: to where a task of the I/O runtime, which
//! awaits the job, has its result. A goroutine has no other side to wake, so
//! this has no counterpart there.
//!
//! # The source
//!
//! A goroutine's timer is kept to the nanosecond; Tokio's has a wheel of 1 ms
//! and fires up to that late by design. So that a comparison with Go is one of
//! scheduling and not of wheels, the source of the Rust contenders is by
//! default a plain thread that sleeps until each arrival (`--source thread`;
//! the kernel adds its timer slack of 50 µs). It stands for what the kernel
//! wakes besides the CPU lane. `--source tokio` is what a service would have:
//! a task of the I/O runtime with `tokio::time::sleep_until`; `--source both`
//! runs every Rust contender with each.
//!
//! # What it does not measure
//!
//! Small jobs that come in numbers (200 of them compute for a millisecond in
//! all); jobs with memory to speak of; a lane with I/O to serve meanwhile (the
//! I/O runtime is there, and idle). How Go and Rust compute: their `fib`s are
//! not equally fast, so totals compare only within Rust. At the start the first
//! 512 long jobs of `spawn_blocking` also start 512 threads.
//!
//! # How to run it
//!
//! ```text
//! cargo bench --bench late_job                # about fifteen minutes on two cores
//! cargo bench --bench late_job -- --quick     # half a minute, figures that mean little
//! cargo bench --bench late_job -- --only rayon,twolane-high --rounds 3
//! ```
//!
//! It writes `target/twolane/late_job.json`, and says of each run how much of
//! the machine others had meanwhile.

// In a program `pub` is no promise to anybody.
#![allow(unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;

mod args;
mod arrivals;
mod contender;
mod fib;
mod goroutines;
mod outcome;
mod peers;
mod ratios;
mod run;
mod started_futures;
mod tables;
mod twolane_side;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Args;
use crate::contender::{Contender, Side};
use crate::outcome::Found;
use crate::support::go::Go;
use crate::support::in_turn;
use crate::support::others::Others;
use crate::support::watchdog::Watchdog;

fn main() {
    let args = Args::parse();
    let plan = args.plan();
    println!(
        "{} cores; {} long jobs of fib({}), {} small ones of fib({}), one each {:?} (sparse: {} each {:?}); rounds: {}",
        support::cores(),
        plan.jobs,
        plan.k,
        plan.late.count,
        fib::SMALL,
        plan.late.every,
        plan.sparse.count,
        plan.sparse.every,
        plan.rounds,
    );

    let (mut entries, mut skipped) = (args.entries(), Vec::new());
    let mut goroutines = None;
    let in_go: Vec<Contender> = entries
        .iter()
        .map(|entry| entry.contender)
        .filter(|contender| contender.is_go())
        .collect();
    if !in_go.is_empty() {
        match Go::build("late_job") {
            Ok(built) => goroutines = Some(built),
            Err(why) => {
                println!("goroutines: skipped, {why}");
                skipped.extend(in_go.into_iter().map(|c| (c, why.clone())));
                entries.retain(|e| !e.contender.is_go());
            }
        }
    }

    // Hidden where stderr is no terminal.
    let progress = ProgressBar::new((entries.len() * plan.rounds) as u64).with_style(
        ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {wide_msg}").unwrap(),
    );
    let watchdog = Watchdog::start();
    let mut found = Found::default();
    for round in 0..plan.rounds {
        for turn in in_turn(entries.len(), round) {
            let entry = entries[turn];
            progress.set_message(entry.to_string());
            let expected = run::expected(&plan);
            let bound = plan.bound(expected);
            watchdog.allow(entry.to_string(), bound);
            let late = entry.contender.late(&plan);
            let others = Others::since_now([]);
            let mut outcome = match entry.contender.side() {
                Side::Go => goroutines::run(goroutines.as_ref().unwrap(), &plan, late, bound),
                Side::Queue(open) => run::run(&plan, expected, open, late, entry.source),
                Side::StartedFutures(backend) => started_futures::run(&plan, backend, entry.source),
            };
            watchdog.rest();
            outcome.others = others.cores();
            progress.suspend(|| tables::print_run(round, entry, &outcome));
            found.add(entry, outcome);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();

    tables::print(&entries, &skipped, &found);
    let ratios = ratios::of(&entries, &found);
    tables::print_ratios(&ratios);
    tables::write(&plan, &entries, &skipped, &found, &ratios);
}
