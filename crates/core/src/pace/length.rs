//! [`Length`]: whether the next step of a call site is short, by the CPU time of those before
//! (or an eighth of the real time, if that is more).
//!
//! A site is known by the mean of its samples, in which a new one has a sixteenth, and counts as
//! [`MOST`] if it took longer. So a short site stays short if one of its jobs in a hundred is long,
//! and turns long after some five long samples in a row. A site that went back and forth would have
//! its jobs pass one another.

use std::time::Duration;

use super::mean::Mean;

/// What a short step computes at most.
pub(crate) const SHORT: Duration = Duration::from_millis(1);
/// After this many samples a site is known. One is enough for a site whose first job is long.
const ENOUGH: u64 = 8;
/// What one sample counts at most.
pub(crate) const MOST: Duration = Duration::from_millis(4);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Short,
    Long,
    /// There are too few samples.
    Unknown,
}

/// Of the samples, each of which counts as [`MOST`] at most.
pub(crate) type MeanTime = Mean<16, 16>;

#[inline]
pub(crate) fn is_long(mean: &MeanTime) -> bool {
    mean.nanos() >= SHORT.as_nanos() as u64
}

#[inline]
pub(crate) fn length(mean: &MeanTime, samples: u64) -> Length {
    if is_long(mean) {
        Length::Long
    } else if samples < ENOUGH {
        Length::Unknown
    } else {
        Length::Short
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: Duration = Duration::from_micros(20);

    #[derive(Default)]
    struct Site {
        mean: MeanTime,
        samples: u64,
    }

    impl Site {
        fn add(&mut self, computed: Duration) {
            self.mean.add(computed.min(MOST));
            self.samples += 1;
        }

        fn length(&self) -> Length {
            length(&self.mean, self.samples)
        }
    }

    fn of(steps: &[(usize, Duration)]) -> Site {
        let mut site = Site::default();
        for &(n, computed) in steps {
            (0..n).for_each(|_| site.add(computed));
        }
        site
    }

    #[test]
    fn a_site_is_short_after_some_samples_and_long_after_one() {
        assert_eq!(of(&[]).length(), Length::Unknown);
        assert_eq!(of(&[(7, TINY)]).length(), Length::Unknown);
        assert_eq!(of(&[(8, TINY)]).length(), Length::Short);
        assert_eq!(of(&[(1, SHORT)]).length(), Length::Long);
        let none = Duration::ZERO;
        assert_eq!(of(&[(8, none), (1, 8 * SHORT)]).length(), Length::Short);
    }

    #[test]
    fn a_few_long_steps_leave_a_site_short() {
        let hour = Duration::from_secs(3600);
        assert_eq!(of(&[(1000, TINY), (3, hour)]).length(), Length::Short);
        let mut mixed = of(&[(8, TINY)]);
        for _ in 0..100 {
            mixed.add(hour);
            (0..99).for_each(|_| mixed.add(TINY));
            assert_eq!(mixed.length(), Length::Short);
        }
    }

    #[test]
    fn a_site_that_changes_is_learned_anew() {
        let mut site = of(&[(1000, TINY), (5, 20 * SHORT)]);
        assert_eq!(site.length(), Length::Long);
        (0..60).for_each(|_| site.add(TINY));
        assert_eq!(site.length(), Length::Short);
    }
}
