//! Histograms of how long the jobs of a priority waited in its queue, and how long their
//! steps took. Any thread adds to them. Each job reads the clock twice for its wait and
//! twice for its step, if the lane has them (`Builder::histograms`).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::clock::now;
use super::histogram::AtomicHistogram;

pub(crate) struct Timings {
    pub(crate) waits: AtomicHistogram,
    pub(crate) steps: AtomicHistogram,
}

// Relaxed: a job's time is written before the job is queued and read after it is taken
// out, and the queue orders the two.
impl Timings {
    pub(crate) fn new(precision: u32) -> Self {
        Self {
            waits: AtomicHistogram::new(precision),
            steps: AtomicHistogram::new(precision),
        }
    }

    /// Returns when the step has begun, of a job that was queued at that time.
    pub(crate) fn begin(&self, queued_at: &AtomicU64) -> u64 {
        let begun = now();
        // 0: it goes on without having been queued.
        let at = queued_at.load(Relaxed);
        if at != 0 {
            queued_at.store(0, Relaxed);
            self.waits.add(begun.saturating_sub(at), 1);
        }
        begun
    }

    pub(crate) fn end(&self, begun: u64) {
        self.steps.add(now().saturating_sub(begun), 1);
    }
}
