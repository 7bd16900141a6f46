//! What the processes of a cluster know, and how they answer.

use std::io::Write;

use ballista_core::config::TaskSchedulingPolicy;
use serde::{Deserialize, Serialize};
use twolane_tpch::tables::Access;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Policy {
    /// The scheduler hands tasks to the executors, which send heartbeats.
    Push,
    /// The executors poll for tasks.
    Pull,
}

impl From<Policy> for TaskSchedulingPolicy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Push => Self::PushStaged,
            Policy::Pull => Self::PullStaged,
        }
    }
}

/// What all of a cluster's processes know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Common {
    pub policy: Policy,
    pub access: Access,
}

/// A line on stdout, which the bench hears (`process.rs`).
pub fn say(answer: &impl Serialize) {
    println!("{}", serde_json::to_string(answer).expect("JSON"));
    std::io::stdout().flush().expect("the bench listens");
}
