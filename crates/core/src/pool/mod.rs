//! The two kinds of threads that can serve a level of a CPU lane. Tasks, cancellation
//! and shutdown are the same on both.
//!
//! Both pop jobs from the lane's queue. For rayon's workers read `rayon.rs` first, then
//! `idle.rs` (which worker has to wake) and `drain.rs` (what an awake worker does). For a
//! Tokio runtime read `tokio.rs`, then `drain_tasks.rs` (how many tasks drain the queue) and
//! `stranded.rs` (jobs beside a worker that Tokio let park).

mod copies;
mod drain;
pub(crate) mod drain_tasks;
mod idle;
pub(crate) mod rayon;
mod stack;
mod stranded;
pub(crate) mod tokio;
