//! [`DurationHistogram`]: how long something took, each time. [`AtomicHistogram`]: where threads
//! add it.
//!
//! A bucket covers one value below 2^[`PRECISION`]. From there on each power of two has as many
//! buckets of equal width. So a bucket is no wider than 1 / 2^[`PRECISION`] of its values.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Values from here on count as the largest below: about 2.4 hours.
const END: u64 = 1 << 43;

/// A histogram takes 10 KB.
const PRECISION: u32 = 5;

/// Of a priority, if the lane has histograms: how long its jobs waited in the queue, and how long
/// their steps ran.
#[derive(Default)]
pub(crate) struct Timings {
    pub(crate) waits: AtomicHistogram,
    pub(crate) steps: AtomicHistogram,
}

pub(crate) struct AtomicHistogram {
    counts: Box<[AtomicU64]>,
    /// Nanoseconds.
    sum: AtomicU64,
}

impl Default for AtomicHistogram {
    fn default() -> Self {
        let counts = (0..=bucket_of(END - 1)).map(|_| AtomicU64::new(0));
        Self {
            counts: counts.collect(),
            sum: AtomicU64::new(0),
        }
    }
}

// Relaxed: the counts order no other memory.
impl AtomicHistogram {
    pub(crate) fn add(&self, nanos: u64) {
        let bucket = bucket_of(nanos.min(END - 1));
        self.counts[bucket as usize].fetch_add(1, Relaxed);
        self.sum.fetch_add(nanos, Relaxed);
    }

    pub(crate) fn read(&self) -> DurationHistogram {
        let counts = self.counts.iter().map(|count| count.load(Relaxed));
        DurationHistogram {
            counts: counts.collect(),
            sum: Duration::from_nanos(self.sum.load(Relaxed)),
        }
    }
}

fn bucket_of(nanos: u64) -> u64 {
    let power = (nanos | 1).ilog2();
    match power.checked_sub(PRECISION) {
        // The leading bit is in both terms: hence 0 for the first power that is split.
        Some(group) => (u64::from(group) << PRECISION) + (nanos >> group),
        None => nanos,
    }
}

/// A histogram of durations. A longer one than 2.4 hours counts as 2.4 hours.
#[derive(Clone, Default)]
pub struct DurationHistogram {
    counts: Vec<u64>,
    sum: Duration,
}

impl DurationHistogram {
    /// Returns the number of entries.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::builder().histograms(true).build().unwrap();
    /// assert_eq!(cpu.handle().metrics().run_time.count(), 0);
    /// # }
    /// ```
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of the entries, exact to the nanosecond.
    ///
    /// While jobs run, it may be ahead of [`count`](Self::count) by an entry of each
    /// thread, or behind it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::builder().histograms(true).build().unwrap();
    /// cpu.spawn_cpu(|| ()).await.unwrap();
    /// let waits = cpu.handle().metrics().queue_wait;
    /// println!("{:?} on average", waits.sum() / waits.count() as u32);
    /// # }
    /// ```
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Returns the duration within which that share of the entries ended.
    ///
    /// `share` is from 0.0 to 1.0. The result is at most a 32nd too long. It is `None` if
    /// there are no entries.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::builder().histograms(true).build().unwrap();
    /// cpu.spawn_cpu(|| ()).await.unwrap();
    /// println!("p99 {:?}", cpu.handle().metrics().run_time.quantile(0.99));
    /// # }
    /// ```
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        // At least the first entry, and at most the last one.
        let rank = self.count() as f64 * share.clamp(0.0, 1.0);
        let rank = rank.ceil().max(1.0) as u64;
        let mut passed = 0;
        let is_it = |count: &u64| {
            passed += count;
            passed >= rank
        };
        let bucket = self.counts.iter().position(is_it)?;
        Some(end_of(bucket))
    }

    /// Returns the buckets that are not empty, for an exporter.
    ///
    /// Each item is the upper bound of a bucket, and the number of entries between the
    /// previous bound and this one.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::builder().histograms(true).build().unwrap();
    /// for (at_most, count) in cpu.handle().metrics().queue_wait.buckets() {
    ///     println!("{count} jobs waited for {at_most:?} or a little less");
    /// }
    /// # }
    /// ```
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let counts = self.counts.iter().enumerate();
        let filled = counts.filter(|(_, count)| **count > 0);
        filled.map(|(bucket, count)| (end_of(bucket), *count))
    }
}

/// The largest value of a bucket.
fn end_of(bucket: usize) -> Duration {
    let bucket = bucket as u64;
    let group = (bucket >> PRECISION).saturating_sub(1);
    Duration::from_nanos(((bucket - (group << PRECISION) + 1) << group) - 1)
}

impl fmt::Debug for DurationHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurationHistogram")
            .field("count", &self.count())
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.quantile(1.0))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_narrower_than_a_32nd_of_its_values() {
        let (mut last, histogram) = (0, AtomicHistogram::default());
        let values =
            (0..43).flat_map(|power| (0..100).map(move |n| (1 << power) * (100 + n) / 100));
        for nanos in values.chain([END - 1]) {
            let bucket = bucket_of(nanos);
            let end = end_of(bucket as usize).as_nanos() as u64;
            assert!(bucket >= last, "{nanos} ns");
            last = bucket;
            assert!(nanos <= end && end <= nanos + nanos / 32, "{nanos}: {end}");
        }
        assert_eq!(last as usize, histogram.counts.len() - 1);
        histogram.add(u64::MAX);
        let max = histogram.read().quantile(1.0);
        assert_eq!(max, Some(Duration::from_nanos(END - 1)));
    }

    #[test]
    fn a_quantile_is_the_end_of_the_bucket_of_its_rank() {
        let histogram = AtomicHistogram::default();
        let quantile = |share| histogram.read().quantile(share).map(|time| time.as_nanos());
        assert_eq!(quantile(0.5), None);
        (0..98).for_each(|_| histogram.add(1_000));
        histogram.add(1_000_000);
        histogram.add(2_000_000);
        assert_eq!(histogram.read().count(), 100);
        assert_eq!(histogram.read().sum(), Duration::from_nanos(3_098_000));
        assert_eq!(quantile(0.0), Some(1_007));
        assert_eq!(quantile(0.98), Some(1_007));
        assert_eq!(quantile(0.99), Some(1_015_807));
        assert_eq!(quantile(1.0), Some(2_031_615));
    }
}
