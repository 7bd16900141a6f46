//! [`Lengths`]: whether the jobs of a call site are long or short, as a scout has to know it
//! (`lane/scout.rs`).
//!
//! It learns from the samples of the steps, by the CPU time that each took: on a busy machine the
//! real time tells how many threads want the core. A step is *long* if it computes for longer than
//! [`LONG`]. What counts is the share of long ones, in which each sample has a sixteenth.

use std::time::Duration;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};

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
    /// Jobs in the level's own queue.
    waiting: AtomicU32,
    /// Jobs in the scout's queue.
    passing: AtomicU32,
}

// Relaxed where nothing depends on the order: two threads that learn at the same time may lose
// a sample.
impl Lengths {
    pub(super) const fn new() -> Self {
        Self {
            samples: AtomicU32::new(0),
            long: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            passing: AtomicU32::new(0),
        }
    }

    pub(crate) fn length(&self) -> Length {
        match (self.samples.load(Relaxed), self.long.load(Relaxed)) {
            (1.., HALF..) => Length::Long,
            (ENOUGH.., 0..HARDLY_ANY) => Length::Short,
            _ => Length::Unknown,
        }
    }

    /// Whether the next job goes into the scout's queue.
    ///
    /// The jobs of a site start in their order. Those in the level's own queue are the older ones:
    /// no job starts from the scout's queue while there are some, and none goes past those in the
    /// scout's queue.
    pub(crate) fn passes(&self) -> bool {
        self.passing.load(SeqCst) > 0 || self.may_start()
    }

    /// Whether a job of the scout's queue may start.
    pub(crate) fn may_start(&self) -> bool {
        self.waiting.load(SeqCst) == 0 && self.length() != Length::Long
    }

    /// A job is about to go into the scout's queue.
    pub(crate) fn enters_scouts(&self) {
        self.passing.fetch_add(1, SeqCst);
    }

    /// It has left that queue; if it goes on to the level's own, it is there.
    pub(crate) fn has_left_scouts(&self) {
        self.passing.fetch_sub(1, SeqCst);
    }

    /// A job is about to go into the level's own queue.
    pub(crate) fn waits(&self) {
        self.waiting.fetch_add(1, SeqCst);
    }

    /// Its turn has come.
    pub(crate) fn has_waited(&self) {
        self.waiting.fetch_sub(1, SeqCst);
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
    }

    /// A step goes on for longer than that.
    pub(crate) fn is_long(&self) {
        self.long.store(ALL, Relaxed);
        self.samples.store(ENOUGH, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(100);

    #[test]
    fn jobs_of_a_site_start_in_their_order() {
        let site = Lengths::new();
        assert!(site.passes());
        site.enters_scouts();
        site.is_long();
        // Behind the other one, which does not start from there.
        assert!(site.passes());
        assert!(!site.may_start());
        site.waits();
        assert!(site.passes());
        site.has_left_scouts();
        assert!(!site.passes());
        (0..100).for_each(|_| site.learn(SHORT));
        assert_eq!(site.length(), Length::Short);
        assert!(!site.passes());
        site.has_waited();
        assert!(site.passes());
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
