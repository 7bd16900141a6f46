//! The protocols of streams, queries and fair shares, in every interleaving that loom explores. (Those of the
//! lanes: `tests/loom` of `twolane-core`.)
//!
//! This crate compiles the files under test unchanged, with loom's atomics in place of
//! the standard library's (`sync.rs`).

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    unused_macros,
    reason = "the files are written for another crate, and only a part is used"
)]

#[path = "../../engines/datafusion/src/polls.rs"]
mod polls;
#[path = "../../crates/core/tests/support/loom_sync.rs"]
mod sync;
#[path = "../../src/stream/window.rs"]
mod window;
#[path = "../../src/stream/workers.rs"]
mod workers;

mod of_polls;
mod of_windows;
mod of_workers;

/// Explores every interleaving with at most three preemptions, which takes each model some seconds
/// at most. `LOOM_MAX_PREEMPTIONS=5` explores more.
fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.check(f);
}
