//! Which code blocks the I/O lane?
//!
//! An axum service has ten routes. Five of them are wrong: they compute or block between
//! two `.await`s, for 80 ms and longer, each in another way (`routes.rs`). Requests come
//! to all. Which are named, after how long, and is any other accused?
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
//! ```text
//! cargo bench --bench find_the_blocker              # a minute
//! cargo bench --bench find_the_blocker -- --quick   # 20 seconds
//! cargo bench --bench find_the_blocker -- --full    # 5 minutes, 100,000 innocent requests
//! ```
//!
//! `--full` has 12,000 of them in each setting of `WatchLayer`, and 1,000 in each other. All
//! but `--test` fail if a route is not reported that has to be, or if another one is.

mod findings;
mod load;
mod machine;
mod report;
mod routes;
mod service;
mod tier;

use std::cell::RefCell;
use std::process::ExitCode;
use std::time::Duration;

use tracing_subscriber::prelude::*;
use twolane_benches::{Bench, Contender, Contest, Form, Report, child};

use crate::findings::{Findings, Setting};
use crate::load::Length;
use crate::machine::{HOG, Machine, State};
use crate::tier::Tier;

/// How many threads drive the I/O runtime. `None`: a `current_thread` runtime.
const WORKERS: [Option<usize>; 3] = [Some(2), Some(1), None];

/// Of this tier.
fn length(bench: &Bench, tier: Tier) -> Length {
    let (millis, innocent) = match (bench.form(), tier) {
        (Form::Test | Form::Quick, _) => (1, 50),
        (Form::Usual, _) => (1_000, 500),
        (Form::Full, Tier::Layer) => (4_000, 12_000),
        (Form::Full, _) => (2_000, 1_000),
    };
    Length {
        time: Duration::from_millis(millis),
        innocent,
    }
}

fn main() -> ExitCode {
    if child::role::<String>().is_some_and(|role| role == HOG) {
        loop {
            std::hint::spin_loop();
        }
    }
    let bench = Bench::new("find_the_blocker");
    let is_short = matches!(bench.form(), Form::Test | Form::Quick);
    let found = RefCell::new(Vec::new());
    let mut contenders = Vec::new();
    for tier in Tier::ALL {
        for machine in Machine::ALL {
            if is_short && tier != Tier::Layer && machine != Machine::Quiet {
                continue;
            }
            for workers in WORKERS {
                let setting = Setting {
                    tier,
                    workers,
                    machine,
                };
                let (found, length) = (&found, length(&bench, tier));
                contenders.push(Contender::new(setting.name(), move || {
                    let of = measure(setting, length)?;
                    let sample = of.sample();
                    found.borrow_mut().push(of);
                    Ok(sample)
                }));
            }
        }
    }
    // Of one round: the spans come last, and once the process has a subscriber it keeps it.
    let contest = Contest::new(contenders, 1, Duration::from_secs(300));
    let Some(kept) = bench.run(contest) else {
        return ExitCode::SUCCESS;
    };
    let mut found = found.into_inner();
    // The tiers of each place together.
    found.sort_by_key(|of: &Findings| {
        let machine = Machine::ALL.iter().position(|at| *at == of.setting.machine);
        (
            machine,
            WORKERS.iter().position(|at| *at == of.setting.workers),
        )
    });
    report::print(&found);
    let mut report = Report::new(bench.name, &kept);
    report::ratios(&found, &mut report);
    report.finish();
    bench.verdict(found.iter().all(Findings::is_perfect))
}

/// An error: no cgroup can be made here.
fn measure(setting: Setting, length: Length) -> Result<Findings, String> {
    if setting.tier == Tier::Span && !tracing::dispatcher::has_been_set() {
        let subscriber = tracing_subscriber::registry().with(twolane::watch::SpanWatch::new());
        subscriber.init();
    }
    let state = State::begin(setting.machine)?;
    let before = state.times_throttled();
    let found = service::run(setting, length);
    let throttled = state
        .times_throttled()
        .zip(before)
        .map(|(now, before)| now - before);
    Ok(Findings::of(setting, &found, throttled))
}
