//! Protocols that are too large for loom, under many random schedules; and, under one, rules that need
//! the same files and no second thread (`alone` in `of_limits.rs`).
//!
//! This crate compiles the files under test unchanged, with shuttle's atomics, threads and channels
//! in place of the standard library's (`sync.rs`). A schedule is a sequentially consistent one:
//! what rests on weaker orderings is loom's.
//!
//! A schedule that fails is printed. To see it once more, in a debugger for instance:
//!
//! ```console
//! TWOLANE_SHUTTLE_REPLAY=SCHEDULE cargo test --test shuttle NAME
//! ```

#![allow(
    dead_code,
    missing_docs,
    unused_imports,
    unused_macros,
    unreachable_pub,
    unnameable_types,
    reason = "the files are written for another crate, and only a part is used"
)]

#[macro_use]
#[path = "../../../crates/core/src/opaque.rs"]
mod opaque;
#[path = "../../../crates/core/src/admission/mod.rs"]
mod admission;
#[path = "../../../crates/core/src/build_error.rs"]
mod build_error;
#[path = "../../../crates/core/src/error/mod.rs"]
mod error;
#[path = "../../../crates/core/src/guard.rs"]
mod guard;
mod io_lane;
#[path = "../../../crates/core/src/key.rs"]
mod key;
#[path = "../../../crates/core/src/lane/mod.rs"]
mod lane;
#[path = "../../../crates/core/src/limits/mod.rs"]
mod limits;
#[path = "../../../crates/core/src/metrics/mod.rs"]
mod metrics;
#[path = "../../../crates/core/src/niceness.rs"]
mod niceness;
#[path = "../../../crates/core/src/pace/mod.rs"]
mod pace;
#[path = "../../../crates/core/src/panics.rs"]
mod panics;
#[path = "../../../crates/core/src/priority.rs"]
mod priority;
#[path = "../../../crates/core/src/remaining.rs"]
mod remaining;
mod sync;
#[path = "../../../crates/core/src/task/mod.rs"]
mod task;
#[path = "../../../crates/core/src/trace.rs"]
mod trace;

// Of streams, and of values on the I/O lane.
#[path = "../../../src/io/owned/slot.rs"]
mod slot;
mod stream;

mod of_batches;
mod of_closing_lanes;
mod of_limits;
mod of_queues;
mod of_room;
mod of_slots;

/// Runs a test under 10,000 schedules, or under the one that the environment names.
///
/// In half of them each step's thread is chosen at random. In the others threads have priorities,
/// which change at [`CHANGES`] steps: so one of them may stand still until all others have ended.
fn check(test: impl Fn() + Send + Sync + 'static) {
    const OF_EACH_KIND: usize = 5_000;
    const CHANGES: usize = 3;
    if let Ok(schedule) = std::env::var("TWOLANE_SHUTTLE_REPLAY") {
        return shuttle::replay(test, &schedule);
    }
    let test = std::sync::Arc::new(test);
    let again = test.clone();
    shuttle::check_pct(move || again(), OF_EACH_KIND, CHANGES);
    shuttle::check_random(move || test(), OF_EACH_KIND);
}
