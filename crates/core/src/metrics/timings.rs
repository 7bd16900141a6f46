//! Histograms of how long the jobs of a priority waited in its queue, and how long their
//! steps ran. Any thread adds to them, if the lane has them (`Builder::histograms`).

use super::histogram::AtomicHistogram;
use crate::pace::Took;
use crate::pace::clock::nanos;

pub(crate) struct Timings {
    pub(crate) waits: AtomicHistogram,
    pub(crate) steps: AtomicHistogram,
}

impl Timings {
    pub(crate) fn new(precision: u32) -> Self {
        Self {
            waits: AtomicHistogram::new(precision),
            steps: AtomicHistogram::new(precision),
        }
    }

    /// A step that stands for so many.
    pub(crate) fn add(&self, took: &Took, steps: u64) {
        self.steps.add(nanos(took.ran), steps);
        if let Some(waited) = took.waited {
            self.waits.add(nanos(waited), steps);
        }
    }
}
