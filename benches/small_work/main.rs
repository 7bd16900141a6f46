//! How small may a piece of work be and still be worth moving off the I/O task?
//!
//! A task of an I/O runtime handles a stream of pieces, each of the same fixed
//! work: 1 µs to 10 ms on an idle core. It has five ways to:
//!
//! - `inline`: it computes them itself,
//! - `inline, yields`: the same, with a `yield_now` after each piece,
//! - `one by one`: `handle.spawn_cpu(piece).await`, then the next,
//! - `several at once`: the same with up to two for each thread of the CPU lane
//!   in flight, in a `FuturesUnordered`,
//! - `batches`: `spawn_cpu(pieces).await` with as many pieces as make 1 ms, and
//!   then the next batch. Of pieces of 1 ms or more it is `one by one`.
//!
//! The stream always has a next piece, and takes a unit of Tokio's cooperative
//! budget for it, as Tokio's channels and sockets do: `inline`, a single poll
//! computes up to 128 pieces.
//!
//! Meanwhile another task of the same I/O runtime is woken about every 2 ms by
//! a channel's sender on a plain thread, at times fixed before and without
//! waiting for an answer. Its latency is from the stamp that the message bears
//! to the task having it (the JSON also has it from when the message was due,
//! which includes the sender's own lateness on a busy machine): with `inline`
//! and `inline, yields` that is the price, with the others it is throughput and
//! CPU time.
//!
//! Once on a Tokio runtime of two workers, once on one of the current thread.
//! The CPU lane has twolane's defaults. All ways run in alternation, in a
//! rotating order, and with them a loop on a plain thread without any runtime:
//! what one core does of the same pieces, the 1 of the throughputs. Figures are
//! the medians of the rounds', ratios those of the rounds' own.
//!
//! # What it does not measure
//!
//! Peers of twolane (see `hop` and `offload`). A CPU lane that is busy with
//! others' jobs, an I/O lane with more than one task that computes. Pieces that
//! touch memory: moving those to another core costs their cache as well. More
//! cores than there are: `several at once` can't be faster than the lane's
//! threads. A latency longer than a slice: where `inline` keeps the other task
//! waiting for all of it, the slice's end is the figure's, and `>` says so.
//! `others` says how much of the machine others had.
//!
//! # How to run it
//!
//! ```text
//! cargo bench --bench small_work              # five minutes
//! cargo bench --bench small_work -- --quick   # 10 seconds, four sizes, one round
//! ```
//!
//! It writes `target/twolane/small_work.json`, and its tables as `small_work.md`.

// In a program `pub` is no promise to anybody.
#![allow(unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;
#[path = "../tail/mod.rs"]
mod tail;

mod break_even;
mod found;
mod lanes;
mod output;
mod pieces;
mod plan;
mod table;
mod wakeups;
mod ways;

use std::time::Duration;

use found::Found;
use lanes::{IoRuntime, Lanes};
use pieces::{Pieces, Unit};
use plan::Plan;
use support::others::Others;
use support::watchdog::Watchdog;
use support::{cores, in_turn, is_quick};
use ways::Way;

fn main() {
    let plan = if is_quick() {
        Plan::quick()
    } else {
        Plan::full()
    };
    let unit = Unit::calibrated();
    println!(
        "{} cores; 1 ms of work takes {:.3} ms alone; rounds: {}, slices of {:?}",
        cores(),
        unit.millisecond_alone().as_secs_f64() * 1e3,
        plan.rounds,
        plan.slice.measured,
    );
    let others = Others::since_now([]);
    let found = measure(&plan, unit);
    output::print_and_write(&plan, &found, others.fraction());
}

fn measure(plan: &Plan, unit: Unit) -> Found {
    let watchdog = Watchdog::start();
    // A slice ends a piece or so after its time; the rest is for a machine
    // that is busy with something else.
    let bound = plan.slice.total() + Duration::from_secs(30);
    let progress = tail::progress(plan.rounds * IoRuntime::ALL.len() * plan.sizes.len());
    let mut found = Found::default();
    for round in 0..plan.rounds {
        for turn in in_turn(IoRuntime::ALL.len(), round) {
            let io = IoRuntime::ALL[turn];
            let lanes = Lanes::open(io);
            watchdog.allow(format!("{io}, idle"), bound);
            found.add_idle(io, lanes.idle(plan.slice));
            for &size in &plan.sizes {
                let pieces = Pieces::new(unit, size);
                for turn in in_turn(Way::ALL.len(), round) {
                    let way = Way::ALL[turn];
                    let what = format!("{io}, pieces of {size}, {way}, round {}", round + 1);
                    watchdog.allow(what, bound);
                    let slice = match way {
                        Way::Alone => lanes::alone(pieces, plan.alone),
                        _ => lanes.run(way, pieces, plan.slice),
                    };
                    found.add(io, size, way, slice);
                }
                progress.inc(1);
            }
            watchdog.allow(format!("{io}, its end"), bound);
            lanes.close();
        }
    }
    watchdog.rest();
    progress.finish_and_clear();
    found
}
