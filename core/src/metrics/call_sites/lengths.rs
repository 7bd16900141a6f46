//! [`Lengths`]: whether the jobs of a call site are long or short, as a scout has to know it
//! (`lane/scout.rs`).
//!
//! It learns from the samples of the steps, by the CPU time that each took: on a busy machine the
//! real time tells how many threads want the core. A step is *long* if it computes for longer than
//! [`LONG`]. What counts is the share of long ones, in which each sample has a sixteenth.

use std::time::Duration;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};

/// What a step may compute before it holds up other short ones.
pub(crate) const LONG: Duration = Duration::from_millis(1);
/// So many samples make a site known.
const ENOUGH: u32 = 16;

const ALL: u32 = 1 << 16;
const HALF: u32 = ALL / 2;
const HARDLY_ANY: u32 = ALL / 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Short,
    Long,
    /// Or of both kinds.
    Unknown,
}

pub(crate) struct Lengths {
    samples: AtomicU32,
    /// The share of long steps.
    long: AtomicU32,
    /// Jobs in the level's queue, behind others.
    waiting: AtomicU32,
    /// A job of an unknown site was given to the scout, and its step has not ended.
    is_tried: AtomicBool,
}

// Relaxed where nothing depends on the order: two threads that learn at the same time may lose
// a sample.
impl Lengths {
    pub(super) const fn new() -> Self {
        Self {
            samples: AtomicU32::new(0),
            long: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            is_tried: AtomicBool::new(false),
        }
    }

    pub(crate) fn length(&self) -> Length {
        match (self.samples.load(Relaxed), self.long.load(Relaxed)) {
            (1.., HALF..) => Length::Long,
            (ENOUGH.., 0..HARDLY_ANY) => Length::Short,
            _ => Length::Unknown,
        }
    }

    /// Whether the next job may start before those that are queued. Not while jobs of its own site
    /// wait: they start in their order. Of an unknown site one may at a time.
    pub(crate) fn may_start_at_once(&self) -> Option<Length> {
        let length = self.length();
        let may = self.waiting.load(SeqCst) == 0
            && match length {
                Length::Short => true,
                Length::Long => false,
                Length::Unknown => !self.is_tried.swap(true, SeqCst),
            };
        may.then_some(length)
    }

    /// A job is about to be queued behind others.
    pub(crate) fn waits(&self) {
        self.waiting.fetch_add(1, SeqCst);
    }

    /// Its turn has come.
    pub(crate) fn has_waited(&self) {
        self.waiting.fetch_sub(1, SeqCst);
    }

    /// The job that was tried has begun, on a worker, or its step has ended.
    pub(crate) fn was_tried(&self) {
        self.is_tried.store(false, SeqCst);
    }

    /// A step has computed for so long.
    pub(super) fn learn(&self, time: Duration) {
        let step = if time > LONG { ALL } else { 0 };
        let samples = self.samples.load(Relaxed);
        let long = self.long.load(Relaxed);
        let share = match samples {
            // The first one decides alone.
            0 => step,
            _ => long - long / 16 + step / 16,
        };
        self.long.store(share, Relaxed);
        self.samples.store(samples.saturating_add(1), Relaxed);
        // Before the awaiter has the output, and submits the next one.
        self.was_tried();
    }

    /// A step goes on for longer than that.
    pub(crate) fn is_long(&self) {
        self.long.store(ALL, Relaxed);
        self.samples.store(ENOUGH, Relaxed);
        self.was_tried();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(100);

    #[test]
    fn an_unknown_site_tries_one_job_at_a_time() {
        let site = Lengths::new();
        assert_eq!(site.may_start_at_once(), Some(Length::Unknown));
        assert_eq!(site.may_start_at_once(), None);
        site.learn(SHORT);
        site.waits();
        assert_eq!(site.may_start_at_once(), None);
        site.has_waited();
        assert_eq!(site.may_start_at_once(), Some(Length::Unknown));
    }

    #[test]
    fn a_site_is_short_after_some_samples_and_long_after_one() {
        let site = Lengths::new();
        for _ in 0..ENOUGH {
            assert_eq!(site.length(), Length::Unknown);
            site.learn(SHORT);
        }
        assert_eq!(site.length(), Length::Short);
        site.learn(2 * LONG);
        assert_eq!(site.length(), Length::Unknown);
        site.is_long();
        assert_eq!(site.length(), Length::Long);
        let long = Lengths::new();
        long.learn(2 * LONG);
        assert_eq!(long.length(), Length::Long);
    }

    #[test]
    fn a_site_that_changes_is_learned_anew() {
        let site = Lengths::new();
        (0..100).for_each(|_| site.learn(2 * LONG));
        assert_eq!(site.length(), Length::Long);
        (0..12).for_each(|_| site.learn(SHORT));
        assert_eq!(site.length(), Length::Unknown);
        (0..80).for_each(|_| site.learn(SHORT));
        assert_eq!(site.length(), Length::Short);
    }
}
