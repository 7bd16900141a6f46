//! [`Metrics`]: the counters and histograms of a lane.

pub(crate) mod call_sites;
pub(crate) mod histogram;
pub(crate) mod io_watch;
mod keys;

use std::fmt;
use std::time::Duration;

pub use call_sites::{CallSite, CallSites};
pub use histogram::DurationHistogram;
pub use keys::KeyUsage;

/// Counts what became of the jobs of one [`Priority`](crate::Priority), and times them.
///
/// [`Handle::metrics`](crate::Handle::metrics) returns it. A job is a closure, future or
/// stream that was passed to `spawn_cpu`, `spawn` or
/// [`stream_from_cpu`](crate::Handle::stream_from_cpu), in any form. Requests and futures
/// on the I/O lane are no jobs. The guide explains each field:
/// `twolane::guide::metrics`.
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
    /// Jobs that ended with an output, even if no awaiter took it. A closure that a `checkpoint`
    /// has ended counts as `cancelled`, `expired` or `dropped`.
    pub completed: u64,
    /// Jobs that ended with a panic.
    pub panicked: u64,
    /// Jobs that ended without an output because their task was cancelled or dropped, or the reader
    /// of their stream. (A closure that runs at that time goes on, and is counted by its end.)
    pub cancelled: u64,
    /// Jobs that ended without an output because of their deadline, by a `checkpoint` too.
    pub expired: u64,
    /// Jobs that the lane dropped at a shutdown, and closures that a `checkpoint` ended there.
    pub dropped: u64,
    /// Tokio tasks of this priority that have not ended: what jobs have spawned inside
    /// [`in_cpu_context`](crate::in_cpu_context), and libraries by
    /// [`Handle::tokio_handle`](crate::Handle::tokio_handle). They are no jobs, but for one for each job
    /// that runs beside its parts. What `spawn_blocking` runs is not in it.
    pub tokio_tasks: u64,
    /// The threads of this priority.
    pub threads: u64,
    /// The [limit](crate::Builder::queue_limit) of the priority's queue, if it has one.
    pub queue_limit: Option<u64>,
    /// Permits of that limit that jobs hold, or callers of `reserve`. 0 without a limit.
    pub permits_in_use: u64,
    /// How long jobs waited in the queue before each of their steps.
    ///
    /// The wait is from the submission, or from the wake-up of a suspended future, to the
    /// step. Longer waits than 2.4 hours count as 2.4 hours. The wait of `reserve` is not
    /// included. Empty without [`Builder::histograms`](crate::Builder::histograms).
    pub queue_wait: DurationHistogram,
    /// How long steps took: each run of a closure, each poll of a future. Empty without
    /// [`Builder::histograms`](crate::Builder::histograms).
    pub run_time: DurationHistogram,
}

impl Metrics {
    /// Returns how long the threads have computed, in sum: the steps that have ended.
    ///
    /// A long closure is in it when it returns. Divide its growth by `threads` and by the
    /// time that has passed, and you have the use of the threads. 0 without
    /// [`Builder::histograms`](crate::Builder::histograms).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// cpu.spawn_cpu(|| (1..=1_000_u64).sum::<u64>()).await.unwrap();
    /// let metrics = cpu.handle().metrics();
    /// assert_eq!(metrics.busy_time(), metrics.run_time.sum());
    /// # }
    /// ```
    pub fn busy_time(&self) -> Duration {
        self.run_time.sum()
    }

    /// Returns the counts of jobs that only grow, by name, for an exporter of your own.
    ///
    /// The crate `twolane` has two: `twolane::guide::metrics`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let metrics = cpu.handle().metrics();
    /// for (name, count) in metrics.counters() {
    ///     println!("{name}: {count}");
    /// }
    /// for (name, count) in metrics.gauges() {
    ///     println!("{name}: {count}");
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
    /// assert!(cpu.handle().metrics().gauges().all(|(_, jobs)| jobs == 0));
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

/// The counters and gauges in one line, for a log: `submitted 2, rejected 0, ...`. Then
/// `tokio_tasks` if there are any, and the permits if the queue has a limit.
impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.counters().chain(self.gauges());
        let all: Vec<_> = all.map(|(name, count)| format!("{name} {count}")).collect();
        f.write_str(&all.join(", "))?;
        if self.tokio_tasks > 0 {
            write!(f, ", tokio_tasks {}", self.tokio_tasks)?;
        }
        match self.queue_limit {
            Some(limit) => write!(f, ", permits_in_use {} of {limit}", self.permits_in_use),
            None => Ok(()),
        }
    }
}
