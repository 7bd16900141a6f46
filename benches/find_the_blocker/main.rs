//! Which code blocks the I/O lane?
//!
//! An axum service has ten routes. Five of them are wrong: they compute or block between
//! two `.await`s, for 80 ms and longer, each in another way (`routes.rs`). Requests come
//! to all. Which are named, after how long, and is any other accused?
//!
//! The watch of the I/O lane ([`Builder::watch_io`](twolane::Builder::watch_io)) has
//! [`WatchLayer`](twolane::watch::WatchLayer) around the routes: all five are named. (What it
//! says of spans, and of code that nothing names, is in its tests.)
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
//! `--full` has 12,000 of them in each setting. All but `--test` fail if a wrong route is not
//! reported, or if another one is.

mod findings;
mod load;
mod machine;
mod report;
mod routes;
mod service;

use std::cell::RefCell;
use std::process::ExitCode;
use std::time::Duration;

use twolane_benches::{Bench, BoxError, Contender, Contest, child};

use crate::findings::{Findings, Setting, are_all_reported};
use crate::load::Length;
use crate::machine::{HOG, Machine, State};

/// How many threads drive the I/O runtime. `None`: a `current_thread` runtime.
const WORKERS: [Option<usize>; 3] = [Some(2), Some(1), None];

fn length(bench: &Bench) -> Length {
    let (millis, innocent) = bench.pick([(1, 50), (1, 50), (1_000, 500), (4_000, 12_000)]);
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
    let found = RefCell::new(Vec::new());
    let mut contenders = Vec::new();
    for machine in Machine::ALL {
        for workers in WORKERS {
            let setting = Setting { workers, machine };
            let (found, length) = (&found, length(&bench));
            contenders.push(Contender::new(setting.name(), move || {
                let of = measure(setting, length)?;
                let sample = of.sample();
                found.borrow_mut().push(of);
                Ok(sample)
            }));
        }
    }
    let contest = Contest::new(&bench, contenders, [1; 4], Duration::from_secs(300));
    contest.report(|report| {
        let found = found.borrow();
        report::print(&found, report);
        report::ratios(&found, report);
        report.verdict(found.iter().all(Findings::is_perfect));
    })
}

/// An error: no cgroup can be made here, or entered.
fn measure(setting: Setting, length: Length) -> Result<Findings, BoxError> {
    let state = State::begin(setting.machine)?;
    let before = state.times_throttled();
    let found = service::run(setting.workers, length, are_all_reported);
    let throttled = state
        .times_throttled()
        .zip(before)
        .map(|(now, before)| now - before);
    Ok(Findings::of(setting, &found, throttled))
}
