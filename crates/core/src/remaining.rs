//! [`Remaining`]: what has not ended when a shutdown stops waiting.

/// What of a CPU lane has not ended when a [`Shutdown`](crate::future::Shutdown) resolves.
///
/// Threads may also run work that is not a job. A Tokio task that a job or a library has spawned
/// ([`in_cpu_context`](crate::in_cpu_context), [`tokio_handle`](crate::Handle::tokio_handle)), what
/// a job gave to `rayon::spawn`, and the destructor of a job that was dropped are no jobs, and keep
/// their thread until they return.
///
/// # Examples
///
/// ```
/// # let io = tokio::runtime::Runtime::new().unwrap();
/// # let _io = io.enter();
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let left = cpu.shutdown_timeout(std::time::Duration::from_secs(5)).wait();
/// if !left.is_empty() {
///     eprintln!("{} jobs and {} threads still run", left.jobs, left.threads);
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Remaining {
    /// How many jobs still run: closures, and futures in the middle of a poll.
    pub jobs: usize,
    /// How many threads of the lane have not ended, those that run these jobs included.
    ///
    /// A thread has ended once the destructors of its thread-locals have run.
    ///
    /// A thread that has nothing to do needs a moment to end. So after a limit of
    /// microseconds this also counts threads that are about to.
    pub threads: usize,
    /// How many tasks of the lane's own Tokio runtime have not been dropped yet.
    ///
    /// A task in the middle of a poll may be missing here: its thread is in `threads`.
    pub tokio_tasks: usize,
}

impl Remaining {
    /// Returns true if nothing is left: no job, no thread and no task.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert!(cpu.shutdown().wait().is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
