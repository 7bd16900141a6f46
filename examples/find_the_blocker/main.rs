//! Which code blocks the I/O lane?
//!
//! # The question
//!
//! An axum service has ten routes. Five of them are wrong: they compute or block between
//! two `.await`s, for 80 ms and longer, each in another way (`routes.rs`). Requests come
//! to all. Which are named, after how long, and is any other accused?
//!
//! # What it shows
//!
//! The watch of the I/O lane ([`Builder::watch_io`](twolane::Builder::watch_io)), which sees
//! more or less of the service (`tier.rs`):
//!
//! - [`WatchLayer`](twolane::watch::WatchLayer) around the routes: all five are named.
//! - [`SpanWatch`](twolane::watch::SpanWatch) alone, and a span in each handler: all five are named.
//! - nothing. Then what blocks in a call, on a runtime with worker threads, is reported without a
//!   name. What computes, or waits for a lock, is not.
//!
//! Each on a runtime with two workers, with one, and on a `current_thread` runtime; on a
//! quiet machine, beside as many other processes as it has cores, which compute all the
//! time, and in a cgroup that may use half a core and is throttled (`machine.rs`).
//!
//! Then a table: for each wrong route, how long after it began to block for the first time
//! the watch reported of it, with which name, and whether it computes or blocks.
//!
//! # How to run it
//!
//! ```text
//! cargo run --release --example find_the_blocker              # a minute
//! cargo run --release --example find_the_blocker -- --quick   # 20 seconds
//! cargo run --release --example find_the_blocker -- --full    # 5 minutes, 100,000 innocent requests
//! ```
//!
//! `--full` has 12,000 of them in each setting of `WatchLayer`, and 1,000 in each other. All
//! forms write `target/twolane/find_the_blocker.json`, and fail if a route is not reported that
//! has to be, or if another one is.

mod findings;
mod load;
mod machine;
mod report;
mod routes;
mod service;
mod tier;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use findings::{Findings, Setting};
use load::Length;
use machine::{Machine, State};
use tier::Tier;
use tracing_subscriber::prelude::*;

#[derive(Parser)]
struct Args {
    /// One round of requests for each setting, and less of them.
    #[arg(long)]
    quick: bool,
    /// Until the innocent routes have answered 100,000 requests in all.
    #[arg(long)]
    full: bool,
    /// This process is one that takes the machine's time.
    #[arg(long, hide = true)]
    hog: bool,
}

impl Args {
    fn length(&self, tier: Tier) -> Length {
        let (millis, innocent) = match (self.quick, self.full, tier) {
            (true, _, _) => (1, 50),
            (_, true, Tier::Layer) => (4_000, 12_000),
            (_, true, _) => (2_000, 1_000),
            _ => (1_000, 500),
        };
        Length {
            time: Duration::from_millis(millis),
            innocent,
        }
    }

    /// Whether this tier is tried on this machine.
    fn has(&self, tier: Tier, machine: Machine) -> bool {
        !self.quick || tier == Tier::Layer || machine == Machine::Quiet
    }
}

/// How many threads drive the I/O runtime. `None`: a `current_thread` runtime.
const WORKERS: [Option<usize>; 3] = [Some(2), Some(1), None];

fn main() -> ExitCode {
    let args = Args::parse();
    if args.hog {
        loop {
            std::hint::spin_loop();
        }
    }
    let mut findings = Vec::new();
    for tier in Tier::ALL {
        if tier == Tier::Span {
            let subscriber = tracing_subscriber::registry().with(twolane::watch::SpanWatch::new());
            subscriber.init();
        }
        for machine in Machine::ALL {
            if args.has(tier, machine) {
                findings.extend(on_machine(&args, tier, machine));
            }
        }
    }
    // The tiers of each place together.
    findings.sort_by_key(|of| {
        let machine = Machine::ALL.iter().position(|at| *at == of.setting.machine);
        (
            machine,
            WORKERS.iter().position(|at| *at == of.setting.workers),
        )
    });
    report::print(&findings);
    report::write(&findings).expect("target/ can be written to");
    if findings.iter().all(Findings::is_perfect) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn on_machine(args: &Args, tier: Tier, machine: Machine) -> Vec<Findings> {
    let state = match State::begin(machine) {
        Ok(state) => state,
        Err(error) => {
            println!("NOT RUN in a throttled cgroup: none can be made here ({error})");
            return Vec::new();
        }
    };
    let mut before = state.times_throttled();
    let findings = WORKERS.map(|workers| {
        let setting = Setting {
            tier,
            workers,
            machine,
        };
        let began = Instant::now();
        let found = service::run(setting, args.length(tier));
        let seconds = began.elapsed().as_secs_f32();
        eprintln!("{seconds:5.1} s  {}, {}", tier.name(), setting.place());
        let now = state.times_throttled();
        let throttled = now.zip(before).map(|(now, before)| now - before);
        before = now;
        Findings::of(setting, &found, throttled)
    });
    findings.into()
}
