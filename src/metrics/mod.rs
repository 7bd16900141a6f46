//! [`Metrics`]: the counters and histograms of a lane.

#[cfg(feature = "metrics")]
pub(crate) mod timings;

use std::fmt;
#[cfg(feature = "metrics")]
use std::time::Duration;

#[cfg(feature = "metrics")]
use histogram::Histogram;

/// Counts what became of the jobs of one [`Priority`](crate::Priority), and times them.
///
/// [`Handle::metrics`](crate::Handle::metrics) returns it. A job is a closure, future or
/// stream that was passed to `spawn_cpu`, `spawn` or
/// [`stream_from_cpu`](crate::Handle::stream_from_cpu), in any form. Requests and futures
/// on the I/O lane are no jobs. The guide explains each field:
/// [`metrics`](crate::guide::metrics).
///
/// ```text
/// submitted = queued + running + suspended
///           + completed + panicked + cancelled + expired + dropped
/// ```
///
/// This sum holds, and each counter is exact, while no job changes its state. A thread
/// that has awaited a task's output, or has cancelled or dropped a task, finds that in
/// the counters. (If another thread ends the job, by a shutdown or a cancel, the awaiter
/// may know of it a moment before the counters do.) A snapshot taken while jobs come and
/// go is not of one moment, but none of its figures is negative.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// cpu.spawn_cpu(|| 1).await.unwrap();
/// cpu.spawn_cpu(|| panic!("no such row")).await.unwrap_err();
/// let metrics = cpu.handle().metrics();
/// assert_eq!((metrics.submitted, metrics.completed, metrics.panicked), (2, 1, 1));
/// assert_eq!((metrics.queued, metrics.running), (0, 0));
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// Jobs that the lane has accepted.
    pub submitted: u64,
    /// Calls that ended without a job or a permit: the queue was full, a deadline had
    /// passed, the lane was shut down, or the I/O runtime was gone. Also waits for a permit
    /// that were given up (as tower's `load_shed` does).
    pub rejected: u64,
    /// Jobs that wait for a thread now: new ones, and futures that were woken.
    pub queued: u64,
    /// Jobs that a thread runs now.
    pub running: u64,
    /// Futures that wait for something now.
    pub suspended: u64,
    /// Jobs that ended with an output, even if no awaiter took it. Also closures that
    /// returned early because of a `checkpoint`.
    pub completed: u64,
    /// Jobs that ended with a panic.
    pub panicked: u64,
    /// Jobs that ended without an output because their task was cancelled or dropped. (A
    /// closure that runs at that time goes on, and is counted by its end.)
    pub cancelled: u64,
    /// Jobs that ended without an output because of their deadline.
    pub expired: u64,
    /// Jobs that the lane dropped: at a shutdown, or because its threads could not start.
    pub dropped: u64,
    /// How long jobs waited in the queue before each of their steps.
    ///
    /// The wait is from the submission, or from the wake-up of a suspended future, to the
    /// step. Longer waits than 2.4 hours count as 2.4 hours. The wait of `admit` is not
    /// included. Feature `metrics`.
    #[cfg(feature = "metrics")]
    pub queue_wait: DurationHistogram,
    /// How long steps took: each run of a closure, each poll of a future. Feature
    /// `metrics`.
    #[cfg(feature = "metrics")]
    pub run_time: DurationHistogram,
}

impl Metrics {
    /// Returns the counts that only grow, by name, for an exporter.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let metrics = cpu.metrics();
    /// for (name, count) in metrics.counters() {
    ///     println!("twolane_jobs_{name}_total {count}");
    /// }
    /// for (name, count) in metrics.gauges() {
    ///     println!("twolane_jobs_{name} {count}");
    /// }
    /// # }
    /// ```
    pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let counters = [
            ("submitted", self.submitted),
            ("rejected", self.rejected),
            ("completed", self.completed),
            ("panicked", self.panicked),
            ("cancelled", self.cancelled),
            ("expired", self.expired),
            ("dropped", self.dropped),
        ];
        counters.into_iter()
    }

    /// Returns the numbers of jobs that have not ended, by name.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert!(cpu.metrics().gauges().all(|(_, jobs)| jobs == 0));
    /// # }
    /// ```
    pub fn gauges(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let gauges = [
            ("queued", self.queued),
            ("running", self.running),
            ("suspended", self.suspended),
        ];
        gauges.into_iter()
    }
}

/// All counters and gauges in one line, for a log: `submitted 2, rejected 0, ...`.
impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.counters().chain(self.gauges());
        let all: Vec<_> = all.map(|(name, count)| format!("{name} {count}")).collect();
        f.write_str(&all.join(", "))
    }
}

/// A histogram of durations.
#[cfg(feature = "metrics")]
#[derive(Clone)]
pub struct DurationHistogram(Histogram);

#[cfg(feature = "metrics")]
impl DurationHistogram {
    /// Returns the number of entries.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.handle().metrics().run_time.count(), 0);
    /// # }
    /// ```
    pub fn count(&self) -> u64 {
        self.buckets().map(|(_, count)| count).sum()
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
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// cpu.spawn_cpu(|| ()).await.unwrap();
    /// println!("p99 {:?}", cpu.handle().metrics().run_time.quantile(0.99));
    /// # }
    /// ```
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let bucket = self
            .0
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
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// for (at_most, count) in cpu.handle().metrics().queue_wait.buckets() {
    ///     println!("{count} jobs waited for {at_most:?} or a little less");
    /// }
    /// # }
    /// ```
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let buckets = self.0.iter().filter(|bucket| bucket.count() > 0);
        buckets.map(|bucket| (Duration::from_nanos(bucket.end()), bucket.count()))
    }
}

#[cfg(feature = "metrics")]
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
