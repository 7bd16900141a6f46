//! [`CpuRuntime`]: the owner of a CPU lane, and the ends it can come to.

mod builder;
mod nice;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::block_on::block_on;
use crate::build_error::BuildError;
use crate::error::JoinError;
use crate::handle::Handle;
use crate::lane::control::Message;
use crate::lane::{Lane, Level, thread};
use crate::priority::Priority;
use crate::task::Task;
pub use builder::Builder;

/// Owns the CPU lane: a fixed set of threads for work that computes, bound to
/// the Tokio runtime that does the I/O.
///
/// Make one per process, next to the Tokio runtime, and hand its
/// [`Handle`] around. Several side by side work, each with threads of its own.
/// What is more urgent than the rest, or less, goes to threads of its own too:
/// [`Priority`].
///
/// # Shutdown
/// All three forms, and dropping it, stop admission at once, from anywhere, any
/// number of times: jobs submitted from then on end with
/// [`JoinError::is_shutdown`]. What becomes of the others depends on what they
/// are doing at that moment, not on the form, and detached ones are no
/// exception:
///
/// | job is | [`shutdown`] | [`shutdown_timeout`] | [`shutdown_background`], drop |
/// |---|---|---|---|
/// | queued | never runs; its task says so at once (or the log, if it was detached) | the same | the same |
/// | a suspended future | dropped; its task says so at once | the same | the same |
/// | a running closure | awaited; its task gets the output | awaited until the deadline, counted if it is late; its task gets the output | not awaited; its task gets the output |
/// | already on the I/O lane (`spawn_io`, streams and bodies on their way) | goes on | the same | the same |
/// | a new `spawn_io`, `stream_from_io`, `body_from_io`, `stream_from_cpu` | refused: its task, or its reader, says so | the same | the same |
/// | an HTTP request (`send_io`, `response_from_io`, `IoLayer`, `IoConnector`), also a new one | goes on: it needs the I/O lane alone | the same | the same |
/// | a wait for a permit ([`Handle::admit`]) | told so at once | the same | the same |
/// | a running future | until its next `.await` that waits, then as a suspended one | the same, counted if it is late | the same, not awaited |
///
/// So await the tasks whose work matters, and then shut down. In a server its
/// handlers hold them; there the order is:
///
/// 1. tell the server to stop, and wait for it as long as you like;
/// 2. `cpu.shutdown_timeout(limit).await`: handlers that wait for a job that
///    has not started are told [`JoinError::is_shutdown`], and answer 503; one
///    that runs and asks [`checkpoint`](crate::JobContext::checkpoint) returns what
///    *you* return for [`Cancelled`](crate::Cancelled): make that a 503 too;
/// 3. wait for the server once more, so that those answers get out.
///
/// A job that runs then can start no other, on either lane: what it has to
/// put down before it ends, it should do so itself. A closure that
/// never ends keeps `shutdown` from resolving, and its thread; closures learn
/// of a shutdown by [`checkpoint`](crate::JobContext::checkpoint). Work of rayon's or
/// Tokio's own that jobs left behind (`rayon::spawn`, `spawn_blocking`) is
/// awaited where those libraries await it; tasks that jobs spawned on
/// [`Backend::Runtime`](crate::Backend::Runtime) with `tokio::spawn` are
/// dropped. Destructors of queued and suspended jobs run on a thread of the
/// CPU lane, not on the one that shuts down (but a job that is submitted in the
/// very moment may be dropped by its submitter).
///
/// [`shutdown`]: Self::shutdown
/// [`shutdown_timeout`]: Self::shutdown_timeout
/// [`shutdown_background`]: Self::shutdown_background
///
/// Returning early from `main` ends the process with whatever runs, as with
/// any thread. A forked child has none of the threads, neither of this lane nor of
/// its Tokio runtime: what it awaits there never resolves, as with Tokio itself, so
/// build both after the fork. With `panic = "abort"` a job's panic ends the process; nothing
/// here can change that.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cpu = twolane::CpuRuntime::new()?;
/// let sum = cpu.spawn_cpu(|| (1..=1_000_u64).sum::<u64>()).await?;
/// assert_eq!(sum, 500_500);
/// cpu.shutdown().await;
/// # Ok(()) }
/// ```
pub struct CpuRuntime {
    handle: Handle,
}

impl CpuRuntime {
    /// A CPU lane with the default settings, on the surrounding Tokio runtime.
    ///
    /// # Errors
    /// [`BuildError`], mostly [`BuildError::NoIoRuntime`]: there is none.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// # }
    /// ```
    pub fn new() -> Result<Self, BuildError> {
        Self::builder().build()
    }

    /// Settings to start from.
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().threads(2);
    /// ```
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn of(lane: Arc<Lane>) -> Self {
        Self {
            handle: Handle::new(Level::new(lane, Priority::default())),
        }
    }

    /// What spawns, at [`Priority::Normal`]: cheap to clone, and it does not
    /// keep the lane running. Keep the `CpuRuntime` itself in `main`, or
    /// wherever its end shall be the lane's.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let handle = cpu.handle();
    /// assert_eq!(handle.spawn_cpu(|| 1).wait().unwrap(), 1);
    /// ```
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// As [`Handle::spawn_cpu`].
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
    /// ```
    pub fn spawn_cpu<F, T>(&self, f: F) -> Task<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.handle.spawn_cpu(f)
    }

    /// As [`Handle::spawn`].
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.spawn(async { 1 }).wait().unwrap(), 1);
    /// ```
    pub fn spawn<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn(future)
    }

    /// As [`Handle::spawn_io`].
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.spawn_io(async { 1 }).wait().unwrap(), 1);
    /// ```
    pub fn spawn_io<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn_io(future)
    }

    /// As [`Handle::install`].
    ///
    /// # Errors
    /// As [`Handle::install`].
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let words = ["a", "bc"];
    /// assert_eq!(cpu.install(|| words.len()).unwrap(), 2);
    /// ```
    pub fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> Result<R, JoinError> {
        self.handle.install(f)
    }

    /// Stops admission at once, and gives a future that resolves when the last
    /// running job and every thread of the lane have ended. See
    /// [Shutdown](Self#shutdown).
    ///
    /// # Cancel safety
    /// The lane closes at the call; the future only waits, and may be dropped.
    /// In a future on the lane itself it does not resolve: that future is
    /// dropped at this very `.await`, as the others are.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let running = cpu.spawn_cpu(|| 1).await;
    /// cpu.shutdown().await;
    /// assert!(cpu.spawn_cpu(|| 1).await.unwrap_err().is_shutdown());
    /// # }
    /// ```
    pub fn shutdown(&self) -> Shutdown {
        self.end(None)
    }

    /// As [`shutdown`](Self::shutdown), and resolves at the latest after
    /// `limit`, with the number of jobs that are running still. The clock is
    /// the lane's own: it needs no timer of the runtime that awaits.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use std::time::Duration;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let (release, blocked) = std::sync::mpsc::channel::<()>();
    /// let (started, running) = tokio::sync::oneshot::channel();
    /// let stuck = cpu.spawn_cpu(move || { started.send(()).unwrap(); blocked.recv() });
    /// running.await.unwrap();
    /// assert_eq!(cpu.shutdown_timeout(Duration::from_millis(10)).await, 1);
    /// drop(release);
    /// # }
    /// ```
    pub fn shutdown_timeout(&self, limit: Duration) -> Shutdown {
        // A limit beyond what the clock can express is no limit.
        self.end(Instant::now().checked_add(limit))
    }

    /// Stops admission at once and waits for nothing. See
    /// [Shutdown](Self#shutdown). Dropping the `CpuRuntime` does the same.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// cpu.shutdown_background();
    /// assert!(cpu.spawn_cpu(|| 1).wait().unwrap_err().is_shutdown());
    /// ```
    pub fn shutdown_background(&self) {
        self.handle.level().lane().close();
    }

    fn end(&self, deadline: Option<Instant>) -> Shutdown {
        let lane = self.handle.level().lane();
        lane.close();
        let (reply, left) = oneshot::channel();
        // An error: the control thread has gone, so nothing is left. The dropped
        // sender says the same to the future.
        let _ = lane.send_control(Message::AwaitShutdown { deadline, reply });
        Shutdown {
            left,
            lane: lane.clone(),
        }
    }
}

impl Drop for CpuRuntime {
    fn drop(&mut self) {
        self.shutdown_background();
    }
}

impl fmt::Debug for CpuRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuRuntime")
            .field("handle", &self.handle)
            .finish()
    }
}

/// Waits for a shutdown: resolves to the number of jobs left running, which is
/// 0 except for [`CpuRuntime::shutdown_timeout`].
///
/// The shutdown itself goes on without it.
#[must_use = "the lane has closed; await this to know when its last job has ended"]
pub struct Shutdown {
    left: oneshot::Receiver<usize>,
    lane: Arc<Lane>,
}

impl Shutdown {
    /// Waits on a plain thread; see [`Task::wait`] for what that is.
    ///
    /// # Panics
    /// On a thread of the lane that shuts down: it would wait for itself.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.shutdown().wait(), 0);
    /// ```
    #[track_caller]
    pub fn wait(self) -> usize {
        if thread::is_worker_of(&self.lane) {
            panic!(
                "`Shutdown::wait` on a thread of the CPU lane that shuts down: it would wait \
                 for itself. Call `shutdown_background` there, or wait on another thread"
            );
        }
        block_on(self)
    }
}

impl Future for Shutdown {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        match Pin::new(&mut self.left).poll(cx) {
            Poll::Ready(left) => Poll::Ready(left.unwrap_or(0)),
            Poll::Pending => Poll::Pending,
        }
    }
}

debug_by_name!(Shutdown);
