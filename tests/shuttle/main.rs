//! Protocols of streams and of values on the I/O lane that are too large for loom, under many random
//! schedules. (Those of the lanes, and how to see a schedule once more: `tests/shuttle` of
//! `twolane-core`.)
//!
//! This crate compiles the files under test unchanged, with shuttle's atomics and threads in place
//! of the standard library's (`sync`), and with a clock and a control thread of its own.

#![allow(
    dead_code,
    unused_imports,
    reason = "the files are written for another crate, and only a part is used"
)]

#[path = "../../src/io/owned/slot.rs"]
mod slot;
mod stream;
mod sync;

mod of_batches;
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
