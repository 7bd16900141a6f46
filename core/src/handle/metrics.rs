//! Methods of [`Handle`] that return what the lane is, and what it has counted.

use stallwatch::{Name, Watcher};

use super::Handle;
use crate::metrics::Metrics;
use crate::metrics::call_sites::CallSites;
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
        self.level.priority()
    }

    /// Returns the number of threads of each priority that is in use.
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
        self.level.lane().settings.threads
    }

    /// Completes when the CPU lane is shut down, or when it ends with its I/O runtime.
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
        self.level.lane().closing()
    }

    /// Returns the counters of the jobs of this handle's [priority](Self::with_priority).
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
        self.level.metrics()
    }

    /// Adds `change` to [`Metrics::threads_of_ended_jobs`] of this handle's priority.
    ///
    /// A job can be dropped while tasks that it has spawned are in the middle of a poll. They
    /// compute on, and no counter of jobs shows it. This is for libraries that see each poll of what
    /// an engine spawns, as `twolane-datafusion` does. When a job ends, the library adds the number
    /// of threads that poll tasks of the job, and each of them adds -1 at the end of its poll. For a
    /// later poll, the thread adds 1 before it and -1 after it, also if it panics.
    ///
    /// It works with each [`Backend`](crate::Backend), and after a shutdown. A sum below zero counts
    /// as 0.
    ///
    /// # Cost
    ///
    /// One atomic operation.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap().handle();
    /// // The job has ended, and a thread polls one of its tasks.
    /// cpu.add_threads_of_ended_jobs(1);
    /// assert_eq!(cpu.metrics().threads_of_ended_jobs, 1);
    /// // That poll has ended.
    /// cpu.add_threads_of_ended_jobs(-1);
    /// assert_eq!(cpu.metrics().threads_of_ended_jobs, 0);
    /// # }
    /// ```
    pub fn add_threads_of_ended_jobs(&self, change: isize) {
        self.level.add_threads_of_ended_jobs(change);
    }

    /// Returns whether the I/O lane is watched: see
    /// [`Builder::watch_io`](crate::Builder::watch_io).
    ///
    /// If it is not, [`io_stalls`](Self::io_stalls) and the fields `io_..` of
    /// [`Metrics`] are empty, and say nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::{CpuRuntime, watch::Watch};
    ///
    /// let cpu = CpuRuntime::builder().watch_io(Watch::new()).build().unwrap();
    /// assert!(cpu.handle().is_io_watched());
    /// # }
    /// ```
    pub fn is_io_watched(&self) -> bool {
        self.level.lane().io_watch.watcher.get().is_some()
    }

    /// Returns how many stalls of the I/O lane were reported of each culprit, most first. Empty
    /// if it is not watched: see [`Builder::watch_io`](crate::Builder::watch_io).
    ///
    /// Code that the watch does not know is `other`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::{CpuRuntime, watch::Watch};
    ///
    /// let cpu = CpuRuntime::builder().watch_io(Watch::new()).build().unwrap();
    /// for (culprit, stalls) in cpu.handle().io_stalls() {
    ///     println!("{culprit}: {stalls}");
    /// }
    /// # }
    /// ```
    pub fn io_stalls(&self) -> Vec<(String, u64)> {
        let watcher = self.level.lane().io_watch.watcher.get();
        let stalls = watcher.map_or_else(Vec::new, Watcher::stalls_by_culprit);
        let named = stalls.into_iter();
        named
            .map(|(culprit, count)| (culprit.unwrap_or(Name::OTHER).to_string(), count))
            .collect()
    }

    /// Returns what the jobs of each call site cost, at all priorities of the lane.
    ///
    /// A call site is the line that submits the job (`spawn_cpu`, `spawn` and all their
    /// forms, [`install`](Self::install), the call of `buffered` of a stream), or a
    /// [name](Self::with_name). It is always on: the guide says what it
    /// costs (`twolane::guide::cost`). This only reports; it moves nothing.
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
        self.level.lane().call_sites()
    }
}
