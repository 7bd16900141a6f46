//! [`DurationHistogram`]: how long something took, each time.

use std::fmt;
use std::time::Duration;

use histogram::Histogram;

/// A histogram of durations.
#[derive(Clone)]
pub struct DurationHistogram {
    buckets: Histogram,
    sum: Duration,
}

impl DurationHistogram {
    pub(super) fn new(buckets: Histogram, sum: Duration) -> Self {
        Self { buckets, sum }
    }

    /// Returns the number of entries.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::builder().enable_histograms().build().unwrap();
    /// assert_eq!(cpu.handle().metrics().run_time.count(), 0);
    /// # }
    /// ```
    pub fn count(&self) -> u64 {
        self.buckets().map(|(_, count)| count).sum()
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
    /// let cpu = twolane::CpuRuntime::builder().enable_histograms().build().unwrap();
    /// cpu.spawn_cpu(|| ()).await.unwrap();
    /// let waits = cpu.metrics().queue_wait;
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
    /// let cpu = twolane::CpuRuntime::builder().enable_histograms().build().unwrap();
    /// cpu.spawn_cpu(|| ()).await.unwrap();
    /// println!("p99 {:?}", cpu.handle().metrics().run_time.quantile(0.99));
    /// # }
    /// ```
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let bucket = self
            .buckets
            .quantile_bucket(share.clamp(0.0, 1.0))
            .ok()
            .flatten()?;
        Some(Duration::from_nanos(bucket.end()))
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
    /// let cpu = twolane::CpuRuntime::builder().enable_histograms().build().unwrap();
    /// for (at_most, count) in cpu.handle().metrics().queue_wait.buckets() {
    ///     println!("{count} jobs waited for {at_most:?} or a little less");
    /// }
    /// # }
    /// ```
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let buckets = self.buckets.iter().filter(|bucket| bucket.count() > 0);
        buckets.map(|bucket| (Duration::from_nanos(bucket.end()), bucket.count()))
    }
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
