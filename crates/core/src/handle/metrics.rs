//! Methods of [`Handle`] that return what the lane is, and what it has counted.

use stallwatch::Watcher;

use super::Handle;
use crate::metrics::{CallSites, DurationHistogram, Metrics};
use crate::priority::Priority;

/// # Observe
impl Handle {
    /// Returns the priority at which this handle spawns.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.handle().priority(), twolane::Priority::Normal);
    /// ```
    pub fn priority(&self) -> Priority {
        self.submitter.priority
    }

    /// Returns how many threads this handle's priority has, once it is in use.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::builder().worker_threads(3).build().unwrap();
    /// assert_eq!(cpu.handle().worker_threads(), 3);
    /// ```
    pub fn worker_threads(&self) -> usize {
        let settings = &self.submitter.levels.lane.settings;
        settings.threads(self.submitter.priority)
    }

    /// Completes when the CPU lane is shut down, or its I/O runtime ends.
    ///
    /// For what runs elsewhere and serves the lane: a feeder, a cache. The lane's own jobs end
    /// without it. It needs no runtime.
    ///
    /// # Cancel safety
    ///
    /// It is cancel safe.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let feeder = tokio::spawn(cpu.handle().closed());
    /// drop(cpu);
    /// feeder.await.unwrap();
    /// # }
    /// ```
    pub fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.submitter.levels.lane.closing()
    }

    /// Returns the counters of the jobs of this handle's [priority](Self::with_priority), and of no
    /// other.
    ///
    /// A snapshot is cheap, and no other thread waits for it.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::Priority;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// for priority in [Priority::High, Priority::Normal, Priority::Low] {
    ///     println!("{priority:?}: {:?}", cpu.handle().with_priority(priority).metrics());
    /// }
    /// # }
    /// ```
    pub fn metrics(&self) -> Metrics {
        self.submitter.level().metrics()
    }

    /// Returns the watch of the I/O lane, which counts the stalls of both lanes.
    /// `None` if it is not watched: see [`Builder::watch_io`](crate::Builder::watch_io).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::{CpuRuntime, watch::Watch};
    ///
    /// let cpu = CpuRuntime::builder().watch_io(Watch::new()).build().unwrap();
    /// let watcher = cpu.handle().watcher().unwrap();
    /// println!("{} stalls, {} of the CPU lane", watcher.stalls(), watcher.pool_stalls());
    /// for (culprit, stalls) in watcher.stalls_by_culprit() {
    ///     println!("{culprit:?}: {stalls}"); // `None`: code that the watch does not know
    /// }
    /// # }
    /// ```
    pub fn watcher(&self) -> Option<&Watcher> {
        self.submitter.levels.lane.io_watch.watcher.get()
    }

    /// Returns how long probes of the [watch](Self::watcher) waited for the I/O lane. Empty if it
    /// is not watched.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::{CpuRuntime, watch::Watch};
    ///
    /// let cpu = CpuRuntime::builder().watch_io(Watch::new()).build().unwrap();
    /// println!("a task that is ready waits {:?}", cpu.handle().io_lag().quantile(0.99));
    /// # }
    /// ```
    pub fn io_lag(&self) -> DurationHistogram {
        let lag = self.submitter.levels.lane.io_watch.lag.get();
        lag.map(|lag| lag.read()).unwrap_or_default()
    }

    /// Returns what the jobs of each call site cost, at all priorities of the lane.
    ///
    /// A call site is the line that submits the job (`spawn_cpu`, `spawn` and all their
    /// forms, [`install`](Self::install), the call of `buffered` of a stream), or a
    /// [name](Self::with_name). It is always on: the guide says what it
    /// costs (`twolane::guide::cost`). The lane itself
    /// learns from the samples which jobs are [short](crate::Builder::short_jobs_first).
    ///
    /// Where jobs have [keys](crate::Key), it takes a lock that workers hold for an instant, and looks
    /// at all keys that are known, some ten thousand: meanwhile these workers wait. So don't call it
    /// for each request.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// for n in 0..100 {
    ///     cpu.spawn_cpu(move || n * n).await.unwrap();
    /// }
    /// let sites = cpu.handle().call_sites();
    /// assert_eq!((sites.len(), sites[0].jobs), (1, 100));
    /// println!("{sites}"); // a table
    /// # }
    /// ```
    pub fn call_sites(&self) -> CallSites {
        self.submitter.levels.call_sites()
    }
}
