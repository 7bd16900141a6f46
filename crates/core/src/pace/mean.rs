//! [`Mean`]: the mean of some times, of which the latest count most.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::clock::nanos;

const BITS: u32 = 48;
const MOST: u64 = (1 << BITS) - 1;

/// The number of samples, up to `SHARE`, and below that their mean in nanoseconds. A new sample has
/// at least one part in `SHARE`, and one in `OF_LONG` if it is more than four times the mean: what
/// turns long is known soon, and where some are far longer than others, the mean is above theirs.
/// One that is far longer than many before it counts as eight times the mean, and 8 µs at least; the
/// next one counts in full.
#[derive(Default)]
pub(crate) struct Mean<const SHARE: u64 = 32, const OF_LONG: u64 = 4>(AtomicU64);

// Relaxed: a hint. Two samples at the same time may count as one.
impl<const SHARE: u64, const OF_LONG: u64> Mean<SHARE, OF_LONG> {
    pub(crate) fn add(&self, time: Duration) {
        let word = self.0.load(Relaxed);
        let (samples, mean) = (word >> BITS, word & MOST);
        // Never, if `OF_LONG` is `SHARE`.
        let are_many = samples >= 2 * OF_LONG;
        // (A coarse clock may have told 0.)
        let bound = if are_many { 8 * mean.max(1_000) } else { MOST };
        let time = nanos(time).min(bound).min(MOST);
        let most = if time / 4 > mean { OF_LONG } else { SHARE };
        let samples = (samples + 1).min(most);
        let mean = mean - mean / samples + time / samples;
        self.0.store(samples << BITS | mean, Relaxed);
    }

    /// 0 before the first sample.
    #[inline]
    pub(crate) fn nanos(&self) -> u64 {
        self.0.load(Relaxed) & MOST
    }

    /// `None` before the first sample.
    #[inline]
    pub(crate) fn get(&self) -> Option<Duration> {
        let word = self.0.load(Relaxed);
        (word != 0).then(|| Duration::from_nanos(word & MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_first_samples_count_alike_and_the_latest_most() {
        let mean = <Mean>::default();
        assert_eq!(mean.get(), None);
        mean.add(4 * MS);
        assert_eq!(mean.get(), Some(4 * MS));
        mean.add(2 * MS);
        assert_eq!(mean.get(), Some(3 * MS));
        (0..1_000).for_each(|_| mean.add(10 * MS));
        assert!(mean.get() > Some(9 * MS) && mean.get() <= Some(10 * MS));
        (0..100).for_each(|_| mean.add(Duration::ZERO));
        assert!(mean.get() < Some(MS));
    }

    #[test]
    fn a_long_time_counts_more() {
        let (mean, plain) = (<Mean>::default(), Mean::<32, 32>::default());
        for _ in 0..1_000 {
            mean.add(MS);
            plain.add(MS);
        }
        mean.add(9 * MS);
        plain.add(9 * MS);
        assert_eq!(mean.get(), Some(11 * MS / 4));
        assert_eq!(plain.get(), Some(5 * MS / 4));
    }

    /// One job of 4 s in a site of 20 ms, and most of the next hundreds were refused.
    #[test]
    fn one_outlier_is_no_new_mean_and_two_are() {
        let mean = <Mean>::default();
        (0..100).for_each(|_| mean.add(20 * MS));
        mean.add(4_000 * MS);
        assert!(mean.get() < Some(60 * MS), "{:?}", mean.get());
        (0..10).for_each(|_| mean.add(20 * MS));
        assert!(mean.get() < Some(35 * MS), "{:?}", mean.get());
        (0..2).for_each(|_| mean.add(4_000 * MS));
        assert!(mean.get() > Some(1_000 * MS), "{:?}", mean.get());
    }

    #[test]
    fn the_longest_time_fits() {
        let mean = <Mean>::default();
        (0..50).for_each(|_| mean.add(Duration::MAX));
        assert_eq!(mean.get(), Some(Duration::from_nanos(MOST)));
    }
}
