//! [`Length`]: whether the next step of a call site is short, by the CPU time of those before.
//!
//! A site is known by the mean of its samples, in which a new one has a sixteenth, and counts as
//! [`MOST`] if it took longer. So a short site stays short if one of its jobs in a hundred is long,
//! and turns long after some five long samples in a row. A site that went back and forth would have
//! its jobs pass one another.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// What a short step computes at most.
const SHORT: Duration = Duration::from_millis(1);
/// So many samples make a site known. One is enough for a site whose first job is long.
const ENOUGH: u32 = 8;
const SHARE: u32 = 16;
/// What one sample counts at most.
const MOST: Duration = Duration::from_millis(4);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Short,
    Long,
    /// There are too few samples.
    Unknown,
}

pub(super) struct MeanTime {
    nanos: AtomicU32,
    samples: AtomicU32,
    /// What these say, so that a push reads one word.
    length: AtomicU8,
}

const UNKNOWN: u8 = 0;
const IS_SHORT: u8 = 1;
const LONG: u8 = 2;

// Relaxed: two threads that add at the same time may lose a sample.
impl MeanTime {
    pub(super) const fn new() -> Self {
        Self {
            nanos: AtomicU32::new(0),
            samples: AtomicU32::new(0),
            length: AtomicU8::new(UNKNOWN),
        }
    }

    pub(super) fn add(&self, computed: Duration) {
        let computed = computed.min(MOST).as_nanos() as u32;
        let mean = match self.samples.load(Relaxed) {
            0 => computed,
            _ => {
                let mean = self.nanos.load(Relaxed);
                mean - mean / SHARE + computed / SHARE
            }
        };
        self.nanos.store(mean, Relaxed);
        let samples = self.samples.load(Relaxed).saturating_add(1);
        self.samples.store(samples, Relaxed);
        let length = if mean >= SHORT.as_nanos() as u32 {
            LONG
        } else if samples < ENOUGH {
            UNKNOWN
        } else {
            IS_SHORT
        };
        self.length.store(length, Relaxed);
    }

    #[inline]
    pub(super) fn length(&self) -> Length {
        match self.length.load(Relaxed) {
            IS_SHORT => Length::Short,
            LONG => Length::Long,
            _ => Length::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: Duration = Duration::from_micros(20);

    fn of(steps: &[(usize, Duration)]) -> MeanTime {
        let mean = MeanTime::new();
        for &(n, computed) in steps {
            (0..n).for_each(|_| mean.add(computed));
        }
        mean
    }

    #[test]
    fn a_site_is_short_after_some_samples_and_long_after_one() {
        assert_eq!(of(&[]).length(), Length::Unknown);
        assert_eq!(of(&[(7, TINY)]).length(), Length::Unknown);
        assert_eq!(of(&[(8, TINY)]).length(), Length::Short);
        assert_eq!(of(&[(1, SHORT)]).length(), Length::Long);
    }

    #[test]
    fn a_few_long_steps_leave_a_site_short() {
        let hour = Duration::from_secs(3600);
        assert_eq!(of(&[(1000, TINY), (3, hour)]).length(), Length::Short);
        let mixed = of(&[(8, TINY)]);
        for _ in 0..100 {
            mixed.add(hour);
            (0..99).for_each(|_| mixed.add(TINY));
            assert_eq!(mixed.length(), Length::Short);
        }
    }

    #[test]
    fn a_site_that_changes_is_learned_anew() {
        let site = of(&[(1000, TINY), (5, 20 * SHORT)]);
        assert_eq!(site.length(), Length::Long);
        (0..60).for_each(|_| site.add(TINY));
        assert_eq!(site.length(), Length::Short);
    }
}
