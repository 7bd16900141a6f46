//! The two kinds of threads that can serve a level of a CPU lane. Tasks, cancellation
//! and shutdown are the same on both.
//!
//! Rayon's workers pop jobs from the lane's queue. Read `rayon.rs` first, then `idle.rs`
//! (which worker has to wake) and `drain.rs` (what an awake worker does). On a Tokio
//! runtime (`tokio.rs`) each job is a Tokio task.

mod drain;
mod idle;
pub(crate) mod rayon;
mod stack;
pub(crate) mod tokio;
