//! The two kinds of threads that can serve a level of a CPU lane. Tasks, cancellation
//! and shutdown are the same on both.
//!
//! Both pop jobs from the lane's queue. For rayon's workers read `rayon/mod.rs` first, then
//! `idle.rs` (which worker has to wake) and `drain.rs` (what an awake worker does). For a
//! Tokio runtime read `tokio/mod.rs`, then `drain_tasks.rs` (how many tasks drain the queue).

pub(crate) mod drain_tasks;
pub(crate) mod rayon;
pub(crate) mod tokio;
