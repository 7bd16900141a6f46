//! All of it together: random streams, jobs, values on the I/O lane and bridges between the
//! lanes, with limits, priorities, cancels, panics and all forms of a shutdown, on both backends
//! and on one to four threads.
//!
//! What is checked: each stream gives all that it should, in order, or ends with an error that
//! fits what was done to it; all that was made is dropped; the permits come back; the counters
//! balance; nothing hangs, and nothing panics but by plan.
//!
//! `TWOLANE_STORM_SECONDS` sets how long it goes on (2), `TWOLANE_SEED` repeats a round: the plan
//! is the same, the interleaving is not.

mod bridges;
mod jobs;
mod owned;
mod round;
mod streams;
mod surroundings;
mod watchdog;

#[path = "../support/dice.rs"]
mod dice;

use std::time::{Duration, Instant};

use dice::Dice;

#[test]
fn everything_at_once() {
    let seconds = std::env::var("TWOLANE_STORM_SECONDS");
    let seconds = seconds.map_or(2, |seconds| seconds.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    watchdog::start();
    let mut seed = dice::seed_of_environment();
    let mut rounds = 0;
    while rounds == 0 || Instant::now() < end {
        round::run(seed);
        rounds += 1;
        seed = Dice::of(seed).below(u64::MAX);
    }
    let units = watchdog::beats();
    eprintln!("{rounds} rounds, {units} units");
}
