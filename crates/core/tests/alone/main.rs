//! What counts what the kernel or Tokio do: wake-ups, threads, the turns of a scheduler.
//!
//! What else runs on the machine changes these counts, so the tests are ignored by default.
//! `.ci/nightly` runs them one after the other, with nothing beside them:
//!
//!     cargo test --test alone -- --ignored --test-threads=1
//!
//! The behaviour that a user sees is tested in the other binaries. Here stands what it costs.

#![cfg(target_os = "linux")]

mod beside_a_join;
mod first_jobs;
mod idle_lane;
mod names;
mod out_of_threads;

#[path = "../support/joins.rs"]
mod joins;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/threads.rs"]
mod threads;
