//! How long the jobs of a priority waited in its queue, and how long their steps
//! took: histograms that any thread adds to.
//!
//! Two clock readings would cost a short job more than the rest of it. So where
//! steps are short, only each [`EVERY`]th is timed, and counts for all since the
//! last one. It is the last timed step that says whether they are: on each
//! worker for its own, and the level's for the waits.

use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use histogram::{AtomicHistogram, Histogram};

/// A step that takes no longer is short: a clock reading takes 20 to 50 ns.
const SHORT: Duration = Duration::from_micros(20);
const EVERY: u32 = 16;
/// Buckets of at most a 32nd of their value, in nanoseconds, up to 2.4 hours.
const BUCKETS: (u8, u8) = (5, 43);
const MOST: u64 = (1 << BUCKETS.1) - 1;

pub(crate) struct Timings {
    waits: AtomicHistogram,
    steps: AtomicHistogram,
    /// Of how many submitted jobs one is to be timed.
    stride: AtomicU32,
}

/// A wait of up to 5.9 hours is told right, in 31 bits.
const TICK: Duration = Duration::from_micros(10);
const TICKS: u32 = u32::MAX >> 1;
/// When a job was queued, if that was not noted.
const UNKNOWN: u32 = 0;
/// Beside the ticks: it was one of [`EVERY`], and counts for all.
const ONE_OF_MANY: u32 = 1 << 31;

fn ticks() -> u32 {
    static EPOCH: LazyLock<Instant> = LazyLock::new(|| Instant::now() - TICK);
    // The lower bits are enough for a difference.
    (EPOCH.elapsed().as_nanos() / TICK.as_nanos()) as u32 & TICKS
}

thread_local! {
    /// Jobs that this thread has submitted since one was noted.
    static UNNOTED: Cell<u32> = const { Cell::new(0) };
    /// Steps that this worker has run since one was timed, and of how many one
    /// is to be.
    static UNTIMED: Cell<(u32, u32)> = const { Cell::new((0, 1)) };
}

impl Timings {
    pub(super) fn new() -> Self {
        let (grouping, most) = BUCKETS;
        let new = || AtomicHistogram::new(grouping, most).expect("these powers are valid");
        Self {
            waits: new(),
            steps: new(),
            stride: AtomicU32::new(1),
        }
    }

    /// A job is about to be queued: what is to be noted of when.
    pub(crate) fn queued(&self) -> u32 {
        let stride = self.stride.load(Relaxed);
        let is_noted = stride == 1
            || UNNOTED.try_with(|unnoted| {
                let is_noted = unnoted.get() + 1 >= stride;
                unnoted.set(if is_noted { 0 } else { unnoted.get() + 1 });
                is_noted
            }) == Ok(true);
        match (is_noted, stride) {
            (false, _) => UNKNOWN,
            (true, 1) => ticks(),
            (true, _) => ticks() | ONE_OF_MANY,
        }
    }

    /// A step of that job begins, on this thread.
    pub(crate) fn begins(&self, queued_at: &AtomicU32) {
        let at = queued_at.load(Relaxed);
        if at != UNKNOWN {
            queued_at.store(UNKNOWN, Relaxed);
            let waited = TICK * (ticks().wrapping_sub(at) & TICKS);
            let times = if at & ONE_OF_MANY == 0 { 1 } else { EVERY };
            add(&self.waits, waited, times);
        }
    }

    /// Runs a step of a job. The answer is also how long it took, if that was
    /// measured; as it is if the caller `wants` it.
    pub(super) fn step<R>(&self, wants: bool, step: impl FnOnce() -> R) -> (R, Option<Duration>) {
        let (untimed, stride) = UNTIMED.get();
        if !wants && untimed + 1 < stride {
            UNTIMED.set((untimed + 1, stride));
            return (step(), None);
        }
        let start = Instant::now();
        let result = step();
        let took = start.elapsed();
        let next = if took < SHORT { EVERY } else { 1 };
        UNTIMED.set((0, next));
        if self.stride.load(Relaxed) != next {
            self.stride.store(next, Relaxed);
        }
        add(&self.steps, took, untimed + 1);
        (result, Some(took))
    }

    pub(crate) fn waits(&self) -> Histogram {
        self.waits.load()
    }

    pub(crate) fn steps(&self) -> Histogram {
        self.steps.load()
    }
}

fn add(histogram: &AtomicHistogram, duration: Duration, times: u32) {
    let nanos = u64::try_from(duration.as_nanos())
        .unwrap_or(u64::MAX)
        .min(MOST);
    let added = histogram.add(nanos, times.into());
    debug_assert!(added.is_ok(), "{nanos} ns is within the buckets");
}
