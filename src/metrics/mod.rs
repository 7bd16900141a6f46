//! [`Metrics`]: a lane as it is seen from outside.

#[cfg(feature = "metrics")]
pub(crate) mod timings;

#[cfg(feature = "metrics")]
use std::fmt;
#[cfg(feature = "metrics")]
use std::time::Duration;

#[cfg(feature = "metrics")]
use histogram::Histogram;

/// What became of the jobs of one [`Priority`](crate::Priority), and how long it
/// took. From [`Handle::metrics`](crate::Handle::metrics).
///
/// A job is what was given to `spawn_cpu` or `spawn`, in whatever form. Requests
/// and futures on the I/O lane are none; streams of
/// [`stream_from_cpu`](crate::Handle::stream_from_cpu) are.
///
/// ```text
/// submitted = queued + running + suspended
///           + completed + panicked + cancelled + expired + dropped
/// ```
///
/// That holds, and each is exact, while nothing is under way: a thread that has
/// awaited a task's output, or has cancelled or dropped one, finds that in the
/// counters. (An awaiter that hears of an end which another thread brings about, a
/// shutdown or a cancel elsewhere, may know of it a moment before the counters do.)
/// A snapshot taken while jobs come and go is of no one moment, but none of its
/// figures is negative.
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
    /// Jobs that were taken on.
    pub submitted: u64,
    /// Calls that ended without a job or a place for one: a full queue, a deadline
    /// that had passed, a shutdown, an I/O runtime that is gone; and waits for a
    /// place that were given up (as tower's `load_shed` does).
    pub rejected: u64,
    /// Jobs that wait for a thread now: new ones, and futures that were woken.
    pub queued: u64,
    /// Jobs that a thread runs now.
    pub running: u64,
    /// Futures that wait for something now; on
    /// [`Backend::Runtime`](crate::Backend::Runtime) also those that were woken and
    /// have not been polled yet.
    pub suspended: u64,
    /// Jobs that ended with an output, whether or not anybody took it: a closure that
    /// returned early because of a `checkpoint` too.
    pub completed: u64,
    /// Jobs that ended with a panic.
    pub panicked: u64,
    /// Jobs that ended without an output because their task was cancelled or
    /// dropped. (A closure that runs then goes on, and is counted by its end.)
    pub cancelled: u64,
    /// Jobs that ended without an output because of their deadline.
    pub expired: u64,
    /// Jobs that the lane dropped: at a shutdown, or because it got no threads.
    pub dropped: u64,
    /// How long jobs waited in the queue before a step of theirs: from their
    /// submission, and from each wake-up of a future that rests (not on
    /// [`Backend::Runtime`](crate::Backend::Runtime), where Tokio queues it); up to
    /// 2.4 hours. The wait of `admit` is not in it. Feature `metrics`.
    #[cfg(feature = "metrics")]
    pub queue_wait: DurationHistogram,
    /// How long steps took: the run of a closure, each poll of a future. Feature
    /// `metrics`.
    #[cfg(feature = "metrics")]
    pub run_time: DurationHistogram,
}

/// How often something took how long.
#[cfg(feature = "metrics")]
#[derive(Clone)]
pub struct DurationHistogram(Histogram);

#[cfg(feature = "metrics")]
impl DurationHistogram {
    /// How many there were.
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

    /// That share of them, from 0.0 to 1.0, took no longer than this, which is at
    /// most a 32nd too much. None if there were none.
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

    /// Those that are not empty, for an exporter: an upper bound, and how many
    /// there are between the bound before and this one.
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
