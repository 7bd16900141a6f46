//! [`CpuRuntime`]: the owner of a CPU lane, and the ways to shut it down.

mod builder;
mod limits;
mod rayon_pool;
mod shutdown;
mod spawn;
mod threads;
mod watch_io;

use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::build_error::BuildError;
use crate::error::CloseReason;
use crate::handle::Handle;
use crate::lane::control::{Due, Message};
pub use builder::Builder;
pub use shutdown::Shutdown;

/// The longest limit of a shutdown.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Owns the CPU lane: a fixed set of threads for work that computes.
///
/// The lane is bound to the Tokio runtime that does its I/O. Make one `CpuRuntime` per process,
/// next to the Tokio runtime, and pass its [`handle`](Self::handle) around. Several side by side
/// work, each with its own threads. More urgent and less urgent jobs have threads of their own too;
/// see [`Priority`](crate::Priority).
///
/// # Shutdown
///
/// All three forms, and dropping the `CpuRuntime`, stop admission at the call. They can
/// be called from any thread, any number of times. Jobs submitted afterwards fail with
/// [`JoinErrorKind::Shutdown`](crate::JoinErrorKind::Shutdown). What becomes of the
/// other jobs, detached ones included, depends on their state at that moment, not on
/// the form:
///
/// | job is | [`shutdown`] | [`shutdown_timeout`] | [`shutdown_background`], drop |
/// |---|---|---|---|
/// | queued | never runs; its task fails with `JoinErrorKind::Shutdown` at once (if it was detached, the log has a warning) | the same | the same |
/// | a suspended future | dropped; its task fails with `JoinErrorKind::Shutdown` at once | the same | the same |
/// | a running closure | awaited; its task gets the output, or `JoinErrorKind::Shutdown` if a checkpoint ends it | awaited until the deadline, counted if it is late; its task gets the output | not awaited; its task gets the output |
/// | already on the I/O lane (`spawn_io`, streams and bodies on their way) | goes on | the same | the same |
/// | a new `spawn_io`, `stream_from_io`, `stream_from_cpu` | refused: its task, or its reader, gets the error | the same | the same |
/// | an HTTP request or body (`send_io`, `response_from_io`, `body_from_io`, `IoLayer`, `IoConnector`), also a new one | goes on: it needs the I/O lane alone | the same | the same |
/// | a wait for a permit ([`Handle::reserve`]) | fails with `JoinErrorKind::Shutdown` at once | the same | the same |
/// | a running future | runs until its next `.await` that has to wait, then as a suspended one | the same, counted if it is late | the same, not awaited |
/// | a running future that was polled [`in_cpu_context`](crate::in_cpu_context) | the same; its task fails with `JoinErrorKind::Shutdown` also if it ends without such a wait | the same | the same |
///
/// So await the tasks whose work matters, and then shut down. In a server the handlers
/// hold the tasks. There the order is:
///
/// 1. Stop the server, and wait for it for some seconds.
/// 2. Call `cpu.shutdown_timeout(limit).await`. A handler that waits for a job that has
///    not started gets [`JoinErrorKind::Shutdown`](crate::JoinErrorKind::Shutdown), and
///    answers 503. A closure that runs and calls
///    [`checkpoint`](crate::JobContext::checkpoint) ends with the same error.
/// 3. Wait for the server once more, so that it sends those answers.
///
/// The guide (`twolane::guide::shutdown`) has the code of these steps. Besides:
///
/// - A job that runs during a shutdown can start neither a job nor a `spawn_io`. What needs the
///   I/O lane alone still works: HTTP requests, and [`Handle::io`].
/// - A closure that never ends keeps its thread, and keeps `shutdown` from resolving.
///   Closures see a shutdown by [`checkpoint`](crate::JobContext::checkpoint).
/// - Work of rayon or Tokio that jobs have started (`rayon::spawn`, `spawn_blocking`) is
///   awaited where those libraries await it. Tasks that jobs have spawned inside
///   [`in_cpu_context`](crate::in_cpu_context) are dropped. A job that finds one of them
///   gone returns, or panics with, an error of its own making. So its output after that
///   does not count.
/// - A stream that the lane reads (`stream_from_cpu`, `on_cpu`) breaks off with an error at
///   the call of the shutdown. It may read from a job that the lane drops, whose channel then
///   ends like a complete one.
/// - A hook of the lane's watch ([`Watch::on_stall`](stallwatch::Watch::on_stall)) that runs keeps
///   its thread, as a closure does. None is called after `shutdown` has resolved.
/// - Destructors of queued and suspended jobs run on a thread of the CPU lane, not on
///   the thread that shuts down. If a job is submitted at the very moment of the
///   shutdown, its submitter may drop it.
///
/// [`shutdown`]: Self::shutdown
/// [`shutdown_timeout`]: Self::shutdown_timeout
/// [`shutdown_background`]: Self::shutdown_background
///
/// Returning early from `main` ends the process with all jobs that run, as with any
/// thread. A forked child has no thread of the lane or of its Tokio runtime. What the
/// child awaits there never resolves, as with Tokio itself. So build both runtimes after
/// the fork. Fork before the process has its first Tokio runtime, too, if Tokio has its feature
/// `parking_lot`, which `full` includes: `parking_lot` keeps a table of the threads that wait, and in the
/// child a runtime may lose a wake-up, and hang. With `panic = "abort"` a job's panic ends the process.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cpu = twolane::CpuRuntime::new()?;
/// let sum = cpu.spawn_cpu(|| (1..=1_000_u64).sum::<u64>()).await?;
/// assert_eq!(sum, 500_500);
/// cpu.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct CpuRuntime {
    handle: Handle,
}

impl CpuRuntime {
    /// Makes a CPU lane with the default settings, on the surrounding Tokio runtime.
    ///
    /// # Errors
    ///
    /// [`BuildError`], mostly because there is no Tokio runtime here.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// # }
    /// ```
    pub fn new() -> Result<Self, BuildError> {
        Self::builder().build()
    }

    /// Returns a [`Builder`] with the default settings.
    ///
    /// # Examples
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().worker_threads(2);
    /// ```
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Returns how many threads each priority of a CPU lane has by default.
    ///
    /// [`Builder::worker_threads`] sets another number. The default is:
    ///
    /// 1. The environment variable `TWOLANE_CPU_THREADS`, if it is set: a positive number.
    ///    Spaces around it are ignored. An empty value is an error.
    /// 2. Otherwise the cores that the calling thread may use (its CPU mask, within the cpuset of
    ///    its cgroup), or the CPU quota of its cgroup, rounded up, if that is less: 2.5 cores give
    ///    3 threads.
    ///
    /// A lane keeps the number that it was built with, also if the quota changes. Everything works
    /// with one thread.
    ///
    /// A quota is not a number of cores. When the process has used up the quota of a period
    /// (mostly 100 ms), the kernel stops **all** its threads until the next period. It
    /// stops the I/O lane's threads too, whatever their nice values. So the lane pauses before that
    /// ([`Builder::throttle_to_quota`]), and leaves some of it to the I/O lane: see the guide
    /// (`twolane::guide::linux`).
    ///
    /// # Errors
    ///
    /// [`BuildError`] if the variable is not a number in the valid range.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(twolane::CpuRuntime::default_threads().unwrap() >= 1);
    /// ```
    pub fn default_threads() -> Result<usize, BuildError> {
        threads::default_threads()
    }

    /// Returns the handle, which spawns at [`Priority::Normal`](crate::Priority::Normal).
    ///
    /// Clone it to keep it: that is cheap. A handle does not keep the lane running. Keep the
    /// `CpuRuntime` itself in `main`, or where its drop should end the lane.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let handle = cpu.handle();
    /// assert_eq!(handle.spawn_cpu(|| 1).wait().unwrap(), 1);
    /// ```
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Stops admission at once, and returns a future that waits for the end of the lane.
    ///
    /// The future resolves when the last running job and every thread of the lane have
    /// ended, the destructors of its thread-locals included. See
    /// [Shutdown](Self#shutdown).
    ///
    /// # Cancel safety
    ///
    /// The lane closes at the call. The future only waits, and may be dropped. In a future
    /// on the lane itself it does not resolve: that future is dropped at this `.await`, as
    /// other running futures are.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let running = cpu.spawn_cpu(|| 1).await;
    /// cpu.shutdown().await;
    /// let error = cpu.spawn_cpu(|| 1).await.unwrap_err();
    /// assert_eq!(error.kind(), twolane::JoinErrorKind::Shutdown);
    /// # }
    /// ```
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown_timeout(Duration::MAX)
    }

    /// Stops admission at once, and returns a future that waits for at most `limit`.
    ///
    /// As [`shutdown`](Self::shutdown), but the future resolves after `limit` at the latest, with
    /// the numbers of jobs and threads that still run ([`Remaining`](crate::Remaining)). The lane
    /// keeps the time itself: the runtime that awaits needs no timer.
    ///
    /// # Cancel safety
    ///
    /// As [`shutdown`](Self::shutdown).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use std::time::Duration;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let (release, blocked) = std::sync::mpsc::channel::<()>();
    /// let (started, running) = tokio::sync::oneshot::channel();
    /// let stuck = cpu.spawn_cpu(move || { started.send(()).unwrap(); blocked.recv() });
    /// running.await.unwrap();
    /// assert_eq!(cpu.shutdown_timeout(Duration::from_millis(10)).await.jobs, 1);
    /// drop(release);
    /// # }
    /// ```
    pub fn shutdown_timeout(&self, limit: Duration) -> Shutdown {
        let lane = self.handle.submitter.levels.lane.clone();
        lane.close();
        let (reply, left) = oneshot::channel();
        // A century is no limit. What the clock cannot express is none either.
        let at = Instant::now() + limit.min(CENTURY);
        // An error means that the control thread has ended: nothing is left. The
        // channel then drops `reply`, and the future resolves to that.
        let _ = lane.send_control(Message::At(at, Due::Reply(reply)));
        Shutdown { left, lane }
    }

    /// Stops admission at once, and waits for nothing.
    ///
    /// Dropping the `CpuRuntime` does the same. See [Shutdown](Self#shutdown).
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// cpu.shutdown_background();
    /// let error = cpu.spawn_cpu(|| 1).wait().unwrap_err();
    /// assert_eq!(error.kind(), twolane::JoinErrorKind::Shutdown);
    /// ```
    pub fn shutdown_background(&self) {
        self.handle.submitter.levels.lane.close();
    }
}

impl Drop for CpuRuntime {
    fn drop(&mut self) {
        let lane = &self.handle.submitter.levels.lane;
        lane.close_because(CloseReason::Dropped);
    }
}
