//! [`CpuRuntime::rayon_pool`]: the threads of a priority, for a library that takes rayon's type.

use std::sync::Arc;

use rayon_core::ThreadPool;

use super::CpuRuntime;
use crate::error::JoinError;
use crate::priority::Priority;

impl CpuRuntime {
    /// Returns the rayon pool whose threads run the jobs of a priority, for a library that takes an
    /// `Arc<ThreadPool>` or a `&ThreadPool`, and for `broadcast`, `in_place_scope` and the like.
    ///
    /// For a closure of your own take [`Handle::install`](crate::Handle::install), which is counted, and
    /// makes a panic an error.
    ///
    /// | what the library runs there | |
    /// |---|---|
    /// | the nice value, the cores, the name, the stack and the start hooks of its threads | those of the lane |
    /// | [`Handle::current`](crate::Handle::current), `tokio::spawn`, `spawn_io` | as in a job: [`current`](crate::Handle::current) is the lane, `tokio::spawn` makes a task of the I/O lane |
    /// | jobs of the priority | share the threads: a thread turns to rayon's work after each job, and to jobs when it has none |
    /// | limits, deadlines, keys, cancellation, pauses for a CPU quota | none |
    /// | metrics, call sites, histograms, spans, the watch | do not see it |
    /// | a panic | is rayon's: `install` resumes it, and one in a `spawn` goes to the log |
    /// | blocking on it | is not checked: in async code `ThreadPool::install` blocks the thread |
    /// | a shutdown | **waits until the last `Arc` of the pool is dropped**, and the log says so. [`Remaining::threads`](crate::Remaining::threads) counts its threads. Drop the library first, or give the shutdown a limit |
    ///
    /// The first call for a priority that is not in use starts its threads, and waits for their start hooks.
    ///
    /// # Cost
    ///
    /// From the first call on, a worker without jobs sleeps in rayon and not in the lane: a job that
    /// comes to an idle priority then takes the wake-up of rayon.
    ///
    /// # Errors
    ///
    /// [`JoinErrorKind::NoThreads`](crate::JoinErrorKind::NoThreads) if the operating system gives none;
    /// those of a lane that was shut down.
    ///
    /// # Panics
    ///
    /// In an [`on_thread_start`](crate::Builder::on_thread_start) hook of the same lane.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), twolane::JoinError> {
    /// use twolane::{CpuRuntime, Priority};
    /// let cpu = CpuRuntime::builder().worker_threads(2).build().unwrap();
    /// let pool = cpu.rayon_pool(Priority::Normal)?;
    /// let names = pool.broadcast(|_| std::thread::current().name().map(str::to_owned));
    /// assert_eq!(names[1].as_deref(), Some("twolane-1"));
    /// drop(pool);
    /// cpu.shutdown().await;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn rayon_pool(&self, priority: Priority) -> Result<Arc<ThreadPool>, JoinError> {
        let submitter = &self.handle.submitter;
        submitter.check_open()?;
        let pool = submitter.levels.at(priority).started()?.lend();
        pool.ok_or_else(|| submitter.levels.lane.reason_once_closed().into())
    }
}
