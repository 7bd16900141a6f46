//! Histograms of how long the jobs of a priority waited in its queue, and how long their
//! steps took. Any thread adds to them. Each job reads the clock twice for its wait and
//! twice for its step.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use histogram::AtomicHistogram;

use super::DurationHistogram;

/// Buckets of at most a 32nd of their value, in nanoseconds, up to 2.4 hours.
const BUCKETS: (u8, u8) = (5, 43);
const MOST: u64 = (1 << BUCKETS.1) - 1;

pub(crate) struct Timings {
    waits: AtomicHistogram,
    steps: AtomicHistogram,
}

/// The time since the first call, in nanoseconds, and never 0.
fn now() -> u64 {
    static EPOCH: LazyLock<Instant> = LazyLock::new(|| Instant::now() - Duration::from_nanos(1));
    nanos(EPOCH.elapsed())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

// Relaxed: a job's time is written before the job is queued and read after it is taken
// out, and the queue orders the two. The histograms are sums, and order nothing else.
impl Timings {
    pub(crate) fn new() -> Self {
        let (grouping, most) = BUCKETS;
        let new = || AtomicHistogram::new(grouping, most).expect("these powers are valid");
        Self {
            waits: new(),
            steps: new(),
        }
    }

    /// Stores the time; called before the job is queued.
    pub(crate) fn queued(queued_at: &AtomicU64) {
        queued_at.store(now(), Relaxed);
    }

    /// Begins a step of that job, and adds its wait.
    pub(crate) fn begin(&self, queued_at: &AtomicU64) -> Instant {
        let at = queued_at.load(Relaxed);
        if at != 0 {
            queued_at.store(0, Relaxed);
            add(&self.waits, now().saturating_sub(at));
        }
        Instant::now()
    }

    /// Ends the step, and adds how long it took.
    pub(crate) fn end(&self, begun: Instant) {
        add(&self.steps, nanos(begun.elapsed()));
    }

    pub(crate) fn waits(&self) -> DurationHistogram {
        DurationHistogram(self.waits.load())
    }

    pub(crate) fn steps(&self) -> DurationHistogram {
        DurationHistogram(self.steps.load())
    }
}

fn add(histogram: &AtomicHistogram, nanos: u64) {
    let added = histogram.increment(nanos.min(MOST));
    debug_assert!(added.is_ok(), "{nanos} ns is within the buckets");
}
