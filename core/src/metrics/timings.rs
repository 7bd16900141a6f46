//! Histograms of how long the jobs of a priority waited in its queue, and how long their
//! steps took. Any thread adds to them. Each job reads the clock twice for its wait and
//! twice for its step, if the lane has them (`Builder::enable_histograms`).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use histogram::AtomicHistogram;

use super::DurationHistogram;
use super::clock::{nanos, now};
use crate::shard::Sums;

/// Buckets of at most a 32nd of their value, in nanoseconds, up to 2.4 hours.
const BUCKETS: (u8, u8) = (5, 43);
const MOST: u64 = (1 << BUCKETS.1) - 1;

pub(crate) struct Timings {
    waits: AtomicHistogram,
    steps: AtomicHistogram,
    /// Nanoseconds, of [`WAITS`] and [`STEPS`].
    sums: Sums<2>,
}

const WAITS: usize = 0;
const STEPS: usize = 1;

impl Default for Timings {
    fn default() -> Self {
        Self {
            waits: histogram(),
            steps: histogram(),
            sums: Sums::default(),
        }
    }
}

// Relaxed: a job's time is written before the job is queued and read after it is taken
// out, and the queue orders the two. The histograms are sums, and order nothing else.
impl Timings {
    /// Stores the time; called before the job is queued.
    pub(crate) fn queued(&self, queued_at: &AtomicU64) {
        queued_at.store(now(), Relaxed);
    }

    /// Begins a step of that job, and adds its wait.
    pub(crate) fn begin(&self, queued_at: &AtomicU64) -> Instant {
        let at = queued_at.load(Relaxed);
        if at != 0 {
            queued_at.store(0, Relaxed);
            let waited = now().saturating_sub(at);
            add(&self.waits, waited);
            self.sums.add(WAITS, waited);
        }
        Instant::now()
    }

    /// Ends the step, and adds how long it took.
    pub(crate) fn end(&self, begun: Instant) {
        let took = nanos(begun.elapsed());
        add(&self.steps, took);
        self.sums.add(STEPS, took);
    }

    pub(crate) fn waits(&self) -> DurationHistogram {
        DurationHistogram::new(self.waits.load(), self.sum(WAITS))
    }

    fn sum(&self, of: usize) -> Duration {
        Duration::from_nanos(self.sums.get(of))
    }

    pub(crate) fn steps(&self) -> DurationHistogram {
        DurationHistogram::new(self.steps.load(), self.sum(STEPS))
    }
}

pub(super) fn histogram() -> AtomicHistogram {
    let (grouping, most) = BUCKETS;
    AtomicHistogram::new(grouping, most).expect("these powers are valid")
}

/// Of a lane that does not record them.
pub(crate) fn none() -> DurationHistogram {
    DurationHistogram::new(histogram().load(), Duration::ZERO)
}

pub(super) fn add(histogram: &AtomicHistogram, nanos: u64) {
    let added = histogram.increment(nanos.min(MOST));
    debug_assert!(added.is_ok(), "{nanos} ns is within the buckets");
}
