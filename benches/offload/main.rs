//! What does it cost to offload one job, or many?
//!
//! Decides how small a piece of work is worth moving (`small_work` says from
//! what size on it is). All jobs here do nothing to speak of, so that what is
//! left is the way there and back.
//!
//! # The contenders
//!
//! All submit from a task of one Tokio runtime with two workers, and each has
//! as many threads of its own as there are cores:
//!
//! - twolane: `spawn_cpu` (a closure) and `spawn` (a future), on both backends;
//! - `tokio::task::spawn_blocking`; a task of a second runtime; the same by
//!   `JoinSet::spawn_on`, a set for each job, as IOx and its descendants do it;
//! - `tokio_rayon`; rayon and a Tokio oneshot by hand; rayon and `async-task`;
//! - `tokio::spawn`, which offloads nothing: it stays on the runtime that is to
//!   be kept free. It shows what a task costs, and is a peer in the batches
//!   only;
//! - the floor: one thread that parks, a place for one job, a oneshot back. It
//!   is no pool and can have one job at a time, but wakes as little as can be;
//! - twolane without its OS weights, which the peers do not have ("no
//!   nice"), at its High priority, and a peer with the weight of Normal ("nice
//!   16"): what it costs, cold and busy, that the I/O lane comes first. The
//!   peer is not counted among the peers;
//! - goroutines, in a process of their own: a goroutine for each job, its
//!   result through a channel. They have ratios of their own.
//!
//! # What is measured
//!
//! - **hot**: one job after the other, each awaited: the mean of some thousand.
//! - **cold**: the same with a gap of 1 ms before each (`tokio::time::sleep`,
//!   in fact 1 to 2 ms), in which all threads fall asleep: the median, as one
//!   trip that the kernel interrupts would outweigh a hundred. The row
//!   "nothing, the gap alone" is the CPU time of the gaps themselves.
//! - **busy**: the same, with a gap, in a lane where four times as many jobs of
//!   50 µs are in flight as it has threads, or sixteen times as many of 5 µs,
//!   fed by another task: the median, and beside it how much of the lane's time
//!   that load had in fact. "High" is a job of that priority in a lane whose
//!   load is Normal.
//!   What is awaited is a place in the queue, then the way back to a task of a
//!   runtime that shares its cores with those threads. (`spawn_blocking` keeps
//!   no such bound by default, so its pool is limited to as many threads as the
//!   others'. A goroutine has no queue to wait in: it runs where it is made.)
//! - **batch**: 100 or 50,000 jobs submitted and then awaited, from one task,
//!   and from two at once: nanoseconds a job.
//! - **allocations and bytes** a job, in the batch of 50,000 (without the `Vec`
//!   of its tasks) and in hot round trips.
//! - **1 MiB**: hot, with a `Vec` of 1 MiB moved in and out: nobody should copy
//!   it.
//! - Beside each latency **the CPU time** of the whole process, a job: threads
//!   that spin for the next job are quick to take it, and somebody pays.
//!
//! Round by round, in a rotating order; a figure is the median of the rounds',
//! a ratio the median of the rounds' own ratios, with the least and the most.
//! "Best peer" is the one with the best median of all rounds.
//!
//! # What it does not measure
//!
//! Jobs that compute (`late_job`, `small_work`), a million at once (`million`),
//! futures that are woken and polled again (`switch`).
//!
//! # How to run it
//!
//! ```text
//! cargo bench --bench offload               # about three minutes
//! cargo bench --bench offload -- --quick    # some seconds, figures that mean little
//! cargo bench --bench offload -- --only hot,cold --contenders "twolane;tokio_rayon"
//! ```
//!
//! It writes `target/twolane/offload.json`.

#![allow(unreachable_pub, reason = "a bench is no library")]

mod args;
mod contenders;
mod figures;
mod goroutines;
mod measure;
#[path = "../support/mod.rs"]
mod support;
mod table;

use std::time::Duration;

use args::Plan;
use figures::Figures;
use support::go::Go;
use support::in_turn;
use support::watchdog::Watchdog;

#[global_allocator]
static ALLOCATOR: alloc_tracker::Allocator<std::alloc::System> = alloc_tracker::Allocator::system();

const BOUND: Duration = Duration::from_secs(60);

fn main() {
    let plan = Plan::from_args();
    let watchdog = Watchdog::start();
    let contenders = contenders::all(&plan);
    let go = match plan.wants("goroutines").then(|| Go::build("offload")) {
        Some(Ok(go)) => Some(go),
        Some(Err(why)) => {
            println!("goroutines: skipped, {why}");
            None
        }
        None => None,
    };
    let mut figures = Figures::default();
    for round in 0..=plan.rounds {
        for measurement in &plan.measurements {
            for turn in in_turn(contenders.len(), round) {
                let contender = &contenders[turn];
                watchdog.allow(format!("{} {measurement:?}", contender.name()), BOUND);
                let found = contender.run(*measurement, &plan);
                // The first round warms up.
                if round > 0 {
                    figures.add(contender.name(), found);
                }
            }
        }
        if let Some(go) = &go {
            watchdog.allow("goroutines".to_owned(), BOUND);
            let found = goroutines::run(go, &plan);
            if round > 0 {
                figures.add(goroutines::NAME, found);
            }
        }
    }
    table::report(&figures);
    // The contenders' threads may rest for ever in what a peer left.
    watchdog.rest();
}
