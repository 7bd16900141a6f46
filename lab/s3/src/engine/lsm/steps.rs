//! What a flush or compaction did when.

use std::future::Future;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Get,
    Compute,
    Put,
}

/// The steps of one operation, with their beginnings and ends.
#[derive(Clone, Debug, Default)]
pub struct Steps(pub Vec<(Step, Instant, Instant)>);

impl Steps {
    pub async fn time<T>(&mut self, step: Step, work: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let output = work.await;
        self.0.push((step, start, Instant::now()));
        output
    }
}
