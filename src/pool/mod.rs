//! The two kinds of threads that a level of a CPU lane can run on. Tasks, cancellation
//! and shutdown are the same above both.
//!
//! Rayon's workers fetch jobs from the lane's queue; on a runtime each job is a Tokio
//! task.

mod drain;
mod idle;
pub(crate) mod rayon;
mod stack;
pub(crate) mod tokio;
