//! The protocols, in every interleaving that loom explores.
//!
//! This crate compiles the files under test unchanged, with loom's atomics in place of
//! the standard library's (`sync.rs`).

#![allow(
    dead_code,
    missing_docs,
    unused_imports,
    unused_macros,
    unreachable_pub,
    unnameable_types,
    clippy::duplicate_mod,
    reason = "the files are written for another crate, and only a part is used"
)]

use std::cell::Cell;
use std::process::Command;
use std::{env, thread};

#[macro_use]
#[path = "../../../crates/core/src/opaque.rs"]
mod opaque;
#[path = "../../../crates/core/src/build_error.rs"]
mod build_error;
#[path = "../../../crates/core/src/error/mod.rs"]
mod error;
#[path = "../../../crates/core/src/guard.rs"]
mod guard;
#[path = "../../../crates/core/src/key.rs"]
mod key;
#[path = "../../../crates/core/src/limits/mod.rs"]
mod limits;
#[path = "../../../crates/core/src/metrics/mod.rs"]
mod metrics;
#[path = "../../../crates/core/src/pace/mod.rs"]
mod pace;
#[path = "../../../crates/core/src/panics.rs"]
mod panics;
#[path = "../../../crates/core/src/priority.rs"]
mod priority;
mod sync;
#[path = "../../../crates/core/src/task/mod.rs"]
mod task;
#[path = "../../../crates/core/src/trace.rs"]
mod trace;
#[path = "../../../crates/core/src/bridge"]
mod bridge {
    pub mod buffer;
    pub mod error;
}
#[path = "../../../crates/core/src/pool/copies.rs"]
mod copies;
#[path = "../../../crates/core/src/pool/idle.rs"]
mod idle;

// Of streams, of queries and of the watch.
#[path = "../../../crates/stallwatch/src/kernel.rs"]
mod kernel;
#[path = "../../../crates/stallwatch/src/name.rs"]
mod name;
#[path = "../../../engines/datafusion/src/polls.rs"]
mod polls;
#[path = "../../../crates/stallwatch/src/record.rs"]
mod record;
#[path = "../../../src/stream/window.rs"]
mod window;
#[path = "../../../src/stream/workers.rs"]
mod workers;

mod job_lane;
mod of_bridges;
mod of_broadcasts;
mod of_clocks;
mod of_idle_workers;
mod of_jobs;
mod of_polls;
mod of_records;
mod of_windows;
mod of_workers;

/// Explores every interleaving with at most three preemptions, which takes each model some seconds
/// at most. `LOOM_MAX_PREEMPTIONS=5` explores more.
fn model(f: impl Fn() + Sync + Send + 'static) {
    model_with(3, f);
}

/// With at most two preemptions: with three this model takes half a minute alone. A larger
/// `LOOM_MAX_PREEMPTIONS` holds for this one, too.
fn large_model(f: impl Fn() + Sync + Send + 'static) {
    model_with(2, f);
}

fn model_with(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    if !is_in_its_process() {
        return;
    }
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(f);
}

/// Whether the test is to explore here. If not, it runs itself once more in a process of its own, and
/// explores there. loom unmaps a stack for each thread of each interleaving. In a process with several
/// busy threads each unmapping interrupts the other cores, which takes most of the time.
///
/// With `TWOLANE_LOOM_PROCESS=1` it explores here, for a debugger.
fn is_in_its_process() -> bool {
    const MARK: &str = "TWOLANE_LOOM_PROCESS";
    std::thread_local! {
        static HAS_RUN: Cell<bool> = const { Cell::new(false) };
    }
    if env::var_os(MARK).is_some() {
        return true;
    }
    // All models of the test run in one process. libtest has a thread for each test.
    if !HAS_RUN.replace(true) {
        let test = thread::current().name().unwrap().to_owned();
        let output = Command::new(env::current_exe().unwrap())
            .env(MARK, "1")
            .args(["--exact", &test, "--nocapture"])
            .output()
            .unwrap();
        let [said, logged] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
        print!("{said}{logged}");
        assert!(
            output.status.success(),
            "{test} failed in its own process; its output is above"
        );
        assert!(said.contains("1 passed"), "no such test");
    }
    false
}
