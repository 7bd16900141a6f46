//! What does it cost to switch from one future to another, to wake one, and to
//! start one?
//!
//! Where goroutines are cheap, futures of a lane should be: a loop that gives
//! way after each item, or that starts a job for each, pays this each time.
//!
//! # What is measured
//!
//! Nanoseconds each, the mean of one turn of a contender:
//!
//! - *switch*: futures that do nothing but `twolane::yield_now().await`; alone,
//!   two beside each other, 100. Counted from when all have been polled, so
//!   their starts are not in it: from the first one's begin to the last one's
//!   end, over the number of all their yields. Of two on one thread, each is a
//!   true switch to the other. On several threads they run side by side, and a
//!   figure is what a switch costs the clock, not what it costs a core. Peers:
//!   `tokio::task::yield_now()`, Go's `runtime.Gosched()`.
//! - *start and join*: `spawn(async { 1 })`, from inside a job of the same
//!   lane, awaited at once, or 1,000 started and then awaited. Peers:
//!   `tokio::spawn` in a task; in Go a goroutine that sends on a channel, and
//!   1,000 that leave their result in a slice, and a `WaitGroup`. And
//!   `spawn_cpu(|| 1)` awaited at once, which has no counterpart in them.
//! - *wake*, without any yield of a library: a future that calls
//!   `cx.waker().wake_by_ref()` and returns `Poll::Pending`, over and over, alone
//!   in its lane; two futures that hand a turn to each other, each by waking the
//!   other's waker (an `AtomicWaker`) and then waiting for its own, per turn; and
//!   10,000 futures that wake themselves 3 times each, started and then awaited,
//!   per future. They are what a lane does not know for a yield: what a channel,
//!   a `select!` or a `FuturesUnordered` does to a job. On several threads the two
//!   may each have a thread, and a turn is then a wake-up from another thread.
//! - `yield_if_due().await` that is not due, called as users do: in the loop of
//!   an `async` block in a job. *Empty loop* is the same without the call, with
//!   its counter as opaque to the compiler; *net* is the difference. What an
//!   `.await` in a loop costs by itself (the counter lives in the future and
//!   not in a register) is thus in the net figure.
//!
//! # The contenders
//!
//! twolane on both backends; Tokio with one worker, without drivers as well as
//! with both of them (`enable_all`, which is what `#[tokio::main]` has); Tokio's
//! `current_thread`; goroutines, in a process of their own. All on one thread
//! (`GOMAXPROCS(1)`), and then, but for `current_thread`, on as many as the
//! machine has cores (`GOMAXPROCS` as it comes).
//!
//! Tokio keeps those that yielded aside until its worker has nothing else, and
//! asks its drivers before it takes them up again: the fewer they are, the
//! larger is each one's part in that.
//!
//! Each is its process's only load and is opened afresh for each turn; round by
//! round, in a rotating order. A ratio is the median of the rounds' own ratios,
//! over Tokio *without* drivers: the cheapest Tokio there is.
//!
//! # What it does not measure
//!
//! A future with state to speak of: here all of it is in the cache. Switches
//! under a load that computes (see `late_job`), wake-ups from threads outside the
//! lane, the way from the I/O lane and back (see `hop`). A lane at a nice value: it
//! has none here, or it would yield the cores to whoever else uses the machine
//! while its peers would not. The line about others says how much that was.
//!
//! # How to run it
//!
//! ```text
//! cargo bench --bench switch                # two to three minutes
//! cargo bench --bench switch -- --quick     # some seconds, figures that mean little
//! ```
//!
//! It writes `target/twolane/switch.json`.

// In a program `pub` is no promise to anybody.
#![allow(unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;

mod case;
mod contender;
mod found;
mod goroutines;
mod measure;
mod plan;
mod ratios;
mod tables;
mod tokio_side;
mod twolane_side;

use indicatif::{ProgressBar, ProgressStyle};

use crate::contender::{Contender, Entry};
use crate::found::Found;
use crate::plan::Plan;
use crate::support::go::Go;
use crate::support::in_turn;
use crate::support::others::Others;
use crate::support::threads::Threads;
use crate::support::watchdog::Watchdog;

fn main() {
    let plan = Plan::new();
    let mut entries = Entry::all();
    let go = Go::build("switch");
    if let Err(why) = &go {
        println!("goroutines: skipped, {why}");
        entries.retain(|entry| entry.contender != Contender::Goroutines);
    }

    // Hidden where stderr is no terminal.
    let progress = ProgressBar::new((entries.len() * (plan.rounds + 1)) as u64).with_style(
        ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {wide_msg}").unwrap(),
    );
    let watchdog = Watchdog::start();
    let mut found = Found::default();
    let others = Others::since_now([]);
    for round in 0..=plan.rounds {
        for turn in in_turn(entries.len(), round) {
            let entry = entries[turn];
            progress.set_message(entry.to_string());
            watchdog.allow(format!("{entry}, round {round}"), plan.bound);
            let threads = Threads::now();
            let figures = match entry.contender {
                Contender::Twolane(backend) => {
                    twolane_side::run(backend, entry.width.threads(), &plan)
                }
                Contender::Tokio(flavor) => tokio_side::run(flavor, entry.width.threads(), &plan),
                Contender::Goroutines => goroutines::run(go.as_ref().unwrap(), entry.width, &plan),
            };
            threads.wait_for_others_to_end();
            watchdog.rest();
            // The first round warms up.
            if round > 0 {
                found.add(entry, figures);
            }
            progress.inc(1);
        }
    }
    progress.finish_and_clear();

    println!("{} cores; {} rounds", support::cores(), plan.rounds);
    if let Some(cores) = others.cores() {
        println!("others had {cores:.2} of the cores meanwhile");
    }
    let skipped = go.as_ref().err().map(String::as_str);
    tables::print(skipped, &found);
    let ratios = ratios::of(&found);
    ratios::print(&ratios);
    tables::write(plan.rounds, skipped, &found, &ratios);
}
