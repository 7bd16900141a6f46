//! All of it together, round by round on a lane of its own: random streams, jobs of twenty kinds by
//! every call that submits one, plain or of tenants, values on the I/O lane and bridges between the
//! lanes, with limits, priorities, deadlines, cancels, panics and all forms of a shutdown, on one to
//! four threads.
//!
//! What is checked: each stream gives all that a plain loop does, in order, or ends with an error
//! that fits what was done to it, and pulls no input from behind its window; what lives on the I/O
//! lane is dropped there; each job starts at most once, ends once, as its work knows, and drops
//! what it has captured once; no job starts or is taken on after the lane's end; the permits come
//! back; the counters are what the storm has counted itself (`check.rs`), and balance; all that was
//! made is dropped, the lane's threads and its memory go; nothing hangs, and nothing panics but by
//! plan.
//!
//! `TWOLANE_STORM_SECONDS` sets how long it goes on (2), `TWOLANE_SEED` repeats a run from that
//! round: the plan is the same, the interleaving is not.

mod bridges;
mod check;
mod ending;
mod held;
mod jobs;
mod ledger;
mod owned;
mod reading;
mod round;
mod stages;
mod streams;
mod surroundings;
mod watchdog;
mod work;

#[path = "../../crates/core/tests/support/dice.rs"]
mod dice;
#[path = "../../crates/core/tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use dice::Dice;
use support::memory;

/// Rounds, on a machine that is busy, too. They have some 400 streams.
const LEAST: u32 = 100;

#[test]
fn everything_at_once() {
    let seconds = std::env::var("TWOLANE_STORM_SECONDS");
    let seconds = seconds.map_or(2, |seconds| seconds.parse().unwrap());
    watchdog::listen();
    let mut seed = dice::seed_of_environment();
    let (mut rounds, mut jobs) = (0, 0);
    let start = Instant::now();
    let end = start + Duration::from_secs(seconds);
    // After a tenth of a long run every pool and cache there is has been filled.
    let mut resident_then = None;
    while rounds < LEAST || Instant::now() < end {
        jobs += round::run(seed);
        rounds += 1;
        if cfg!(target_os = "linux") && seconds >= 100 && start.elapsed().as_secs() >= seconds / 10
        {
            let now = memory("VmRSS");
            let then = *resident_then.get_or_insert(now);
            let most = then + then / 10 + 64 * 1024;
            assert!(now <= most, "{then} kB were resident then, now {now}");
        }
        seed = Dice::of(seed).below(u64::MAX);
    }
    eprintln!("{rounds} rounds, {jobs} jobs");
}
