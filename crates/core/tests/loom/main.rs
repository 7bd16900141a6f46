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

#[macro_use]
#[path = "../../src/opaque.rs"]
mod opaque;
#[path = "../../src/build_error.rs"]
mod build_error;
#[path = "../../src/error/mod.rs"]
mod error;
#[path = "../../src/guard.rs"]
mod guard;
#[path = "../../src/key.rs"]
mod key;
#[path = "../../src/limits/mod.rs"]
mod limits;
#[path = "../../src/metrics/mod.rs"]
mod metrics;
#[path = "../../src/pace/mod.rs"]
mod pace;
#[path = "../../src/panics.rs"]
mod panics;
#[path = "../../src/priority.rs"]
mod priority;
#[path = "../support/loom_sync.rs"]
mod sync;
#[path = "../../src/task/mod.rs"]
mod task;
#[path = "../../src/trace.rs"]
mod trace;
#[path = "../../src/bridge"]
mod bridge {
    pub mod buffer;
    pub mod error;
}
#[path = "../../src/pool/copies.rs"]
mod copies;
#[path = "../../src/pool/idle.rs"]
mod idle;

mod job_lane;
mod of_bridges;
mod of_broadcasts;
mod of_clocks;
mod of_idle_workers;
mod of_jobs;

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
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(f);
}
