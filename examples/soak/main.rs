//! A soak: millions of random jobs on thousands of lanes, with a ledger of its own.
//!
//! # The question
//!
//! Is a job ever lost, run twice, told two ends or none? Do a lane's counters
//! ([`Handle::metrics`](twolane::Handle::metrics)) say what happened? Does anything
//! stay when a lane is gone: a thread, memory? Does anything hang?
//!
//! # What it does
//!
//! Rounds of some thousand jobs. Each builds a lane (backend, threads, limits by
//! chance), on which tasks and a thread submit closures and futures of some thirty
//! kinds by every call there is, await, cancel, abort, drop and detach them; in most
//! rounds the lane is shut down in the middle, in any form and from anywhere, in some
//! its I/O runtime dies. After each round all accounts are compared; the first that
//! does not hold ends the soak, with the seed. `check.rs` is the list of what holds.
//!
//! The plan is derived from the seed; the timing is not. So a failure may take a few
//! runs with its seed to come again.
//!
//! # How to run it
//!
//! ```text
//! cargo run --release --example soak                        # a million jobs
//! cargo run --release --example soak -- --quick             # some seconds
//! cargo run --release --example soak -- --jobs 10000000 --backend rayon
//! ```

// So that its modules are found beside it.
#[path = "soak.rs"]
mod soak;

use std::io::{IsTerminal, stderr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use twolane::Backend;

use crate::soak::Soak;
use crate::soak::process::resident_kib;

#[derive(Parser)]
#[command(about = "Millions of random jobs on thousands of lanes, with a ledger of its own")]
struct Args {
    /// How many jobs, in all rounds together
    #[arg(long, default_value_t = 1_000_000)]
    jobs: u64,
    /// The plan's seed; by default that in TWOLANE_SEED, or another one each time
    #[arg(long)]
    seed: Option<u64>,
    /// Of a round, at most; small ones have more lanes built and shut down
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..))]
    jobs_per_round: u32,
    /// Some 20,000 jobs, in small rounds
    #[arg(long)]
    quick: bool,
    #[arg(long, value_enum, default_value = "both")]
    backend: Backends,
}

#[derive(Clone, Copy, ValueEnum)]
enum Backends {
    Rayon,
    Runtime,
    Both,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let seed = args.seed.unwrap_or_else(soak::seed_of_environment);
    println!("TWOLANE_SEED={seed}");
    let backends = match args.backend {
        Backends::Rayon => vec![Backend::Rayon],
        Backends::Runtime => vec![Backend::Runtime],
        Backends::Both => vec![Backend::Rayon, Backend::Runtime],
    };
    let (jobs, most) = if args.quick {
        (20_000, 4_000)
    } else {
        (args.jobs, args.jobs_per_round)
    };
    let per_round = (most / 10, most);
    let mut soak = Soak::new(seed, backends, per_round);
    // A check that fails has said so by its panic.
    let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut soak, jobs)));
    if outcome.is_err() {
        eprintln!(
            "TWOLANE_SEED={seed}: failed in round {}",
            soak.rounds().saturating_sub(1)
        );
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn run(soak: &mut Soak, jobs: u64) {
    let started = Instant::now();
    let mut progress = Progress::new(jobs);
    let mut memory_is_noted = false;
    while soak.jobs() < jobs {
        soak.round();
        progress.show(soak, started);
        if !memory_is_noted && soak.jobs() >= jobs / 10 {
            soak.note_memory_of_a_tenth();
            memory_is_noted = true;
        }
    }
    progress.bar.finish_and_clear();
    soak.tally.print();
    let (then, now) = soak.check_memory();
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} rounds in {seconds:.1} s: {:.0} jobs/s. Resident: {then} KiB after a tenth, {now} KiB now.",
        soak.rounds(),
        soak.jobs() as f64 / seconds,
    );
    println!(
        "\nAll checks held. Look for: every way to end has its jobs; those seen as Output have all \
         finished,\nthose seen as Cancelled, Expired or Shutdown none, except for some with Tokio \
         tasks on the lane;\nrefused ones (QueueFull, IoGone) never started; Dropped and Detached \
         ones ended in any way, and\nare in the lanes' counters by it. Memory stays as it was."
    );
}

struct Progress {
    bar: ProgressBar,
    next_line: Instant,
}

impl Progress {
    const EVERY: Duration = Duration::from_secs(5);

    fn new(jobs: u64) -> Self {
        let bar = if stderr().is_terminal() {
            ProgressBar::new(jobs)
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} jobs, {msg}, {eta} left");
        bar.set_style(style.expect("a template that is right"));
        Self {
            bar,
            next_line: Instant::now() + Self::EVERY,
        }
    }

    fn show(&mut self, soak: &Soak, started: Instant) {
        let (jobs, rounds) = (soak.jobs(), soak.rounds());
        let rate = jobs as f64 / started.elapsed().as_secs_f64();
        let line = format!("{rounds} rounds, {rate:.0} jobs/s, {} KiB", resident_kib());
        self.bar.set_position(jobs);
        if self.bar.is_hidden() && Instant::now() >= self.next_line {
            eprintln!("{jobs} jobs, {line}");
            self.next_line = Instant::now() + Self::EVERY;
        }
        self.bar.set_message(line);
    }
}
