//! Ways into the queue: at once or not at all, and, where it has a limit
//! ([`Builder::queue_limit`](crate::Builder::queue_limit)), by waiting for a permit
//! or by getting the closure back. The permits are those of a Tokio semaphore.

mod admit;
mod permit;
mod rejected;

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::TryAcquireError;

use crate::error::{Cause, JoinError};
use crate::handle::Handle;
use crate::inherit::{self, Covered};
use crate::job::{ClosureWork, Extras, FutureWork, Job, Work};
use crate::lane::{Event, Level};
use crate::task::Task;
pub use admit::Admit;
pub use permit::Permit;
pub use rejected::Rejected;

/// At once, or not at all.
pub(crate) fn submit<W: Work>(handle: &Handle, work: W) -> Task<W::Output> {
    match enter(handle.level()) {
        Ok(permit) => take_on(handle.level(), permit, None, work),
        Err(cause) => refuse(handle.level(), cause, work),
    }
}

fn refuse<W: Work>(level: &Level, cause: Cause, work: W) -> Task<W::Output> {
    level.counters().count(Event::Rejected);
    // On this thread, where a destructor that panics is the caller's as with any
    // value that it drops.
    drop(work);
    Task::refused(cause)
}

/// The permit that covers this thread's submissions, if one does; else one of the
/// level's own, if it has a limit.
fn enter(level: &Level) -> Result<Option<inherit::Permit>, Cause> {
    if let Some(cause) = level.lane().refusal() {
        return Err(cause);
    }
    // Before the limit: by way of a priority that has none, a job may submit to
    // its own again.
    match (inherit::covered(level.lane()), level.limit()) {
        (Covered::By(permit), _) => Ok(Some(permit)),
        (Covered::No, Some(limit)) => match limit.clone().try_acquire_owned() {
            Ok(permit) => Ok(Some(Arc::new(permit))),
            Err(TryAcquireError::NoPermits) => Err(Cause::QueueFull),
            Err(TryAcquireError::Closed) => Err(Cause::ShutDown),
        },
        _ => Ok(None),
    }
}

fn take_on<W: Work>(
    level: &Level,
    permit: Option<inherit::Permit>,
    deadline: Option<Instant>,
    work: W,
) -> Task<W::Output> {
    #[cfg_attr(not(feature = "test-util"), allow(unused_mut))]
    let mut extras = Extras::new(permit, deadline);
    #[cfg(feature = "test-util")]
    if W::IS_CLOSURE && level.lane().settings.holds_paused_clock {
        extras.hold_clock(level.lane().io.handle());
    }
    let job = Job::new(level.clone(), work, extras);
    job.submitted();
    let tokio = level.submit(job.clone());
    Task::new(job, tokio)
}

impl Handle {
    /// As [`spawn_cpu`](Self::spawn_cpu), and hands the closure back if the job is
    /// not taken on: to be run here, later, elsewhere, or not at all.
    ///
    /// # Errors
    /// [`Rejected`]: the queue has a [limit](crate::Builder::queue_limit) and is
    /// full, or others wait for a permit; or the lane takes on nothing at all.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// use twolane::{CpuRuntime, Priority};
    /// let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, 1).build().unwrap();
    /// let (release, wait) = std::sync::mpsc::channel::<()>();
    /// let first = cpu.handle().try_spawn_cpu(move || wait.recv()).unwrap();
    /// let rejected = cpu.handle().try_spawn_cpu(|| 6 * 7).unwrap_err();
    /// assert!(rejected.cause().is_queue_full());
    /// let closure = rejected.into_inner();
    /// assert_eq!(closure(), 42);
    /// drop(release);
    /// # first.wait().unwrap().unwrap_err();
    /// ```
    pub fn try_spawn_cpu<F, T>(&self, f: F) -> Result<Task<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.try_submit(f, ClosureWork::new)
    }

    /// As [`spawn`](Self::spawn), and hands the future back if the job is not
    /// taken on.
    ///
    /// # Errors
    /// As [`try_spawn_cpu`](Self::try_spawn_cpu).
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// cpu.shutdown().await;
    /// let rejected = cpu.handle().try_spawn(async { 42 }).unwrap_err();
    /// assert!(rejected.cause().is_shutdown());
    /// assert_eq!(rejected.into_inner().await, 42);
    /// # }
    /// ```
    pub fn try_spawn<F>(&self, future: F) -> Result<Task<F::Output>, Rejected<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.try_submit(future, FutureWork::new)
    }

    fn try_submit<F, W: Work>(
        &self,
        work: F,
        into_work: impl FnOnce(F) -> W,
    ) -> Result<Task<W::Output>, Rejected<F>> {
        let level = self.level();
        match enter(level) {
            Ok(permit) => Ok(take_on(level, permit, None, into_work(work))),
            Err(cause) => {
                level.counters().count(Event::Rejected);
                Err(Rejected::new(work, cause.into()))
            }
        }
    }

    /// Waits for a permit of the queue: backpressure. At once where it has no
    /// [limit](crate::Builder::queue_limit), and inside a job, which has one
    /// already.
    ///
    /// Waiters are served in FIFO order, from their first poll on. The future
    /// resolves to a [`Permit`], which spawns. On a plain thread: [`Admit::wait`]. To
    /// wait no longer than until some time, put Tokio's `timeout_at` around it.
    ///
    /// # Errors
    /// [`JoinError::is_shutdown`], also if that comes while it waits;
    /// [`JoinError::is_io_runtime_gone`].
    ///
    /// # Cancel safety
    /// Dropping it gives up its turn, and loses nothing else: a permit that was
    /// given to it meanwhile goes to the next waiter.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), twolane::JoinError> {
    /// use twolane::{CpuRuntime, Priority};
    /// let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, 8).build().unwrap();
    /// let mut tasks = Vec::new();
    /// for n in 0..100_u64 {
    ///     // Reads no more of its input than the lane can take.
    ///     tasks.push(cpu.handle().admit().await?.spawn_cpu(move || n * n));
    /// }
    /// # for (n, task) in (0..).zip(tasks) { assert_eq!(task.await?, n * n); }
    /// # Ok(()) }
    /// ```
    pub fn admit(&self) -> Admit {
        Admit::new(self.clone())
    }

    /// A permit of the queue, if there is one now: before there is a closure, or
    /// anything else that its job needs.
    ///
    /// # Errors
    /// [`JoinError::is_queue_full`], also if others wait for a permit;
    /// [`JoinError::is_shutdown`], [`JoinError::is_io_runtime_gone`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let answer = match cpu.handle().try_admit() {
    ///     Ok(permit) => permit.spawn_cpu(|| "computed").await.unwrap(),
    ///     Err(full) => { eprintln!("{full}"); "503" }
    /// };
    /// # assert_eq!(answer, "computed");
    /// # }
    /// ```
    pub fn try_admit(&self) -> Result<Permit, JoinError> {
        Permit::enter(self).map_err(|cause| {
            self.level().counters().count(Event::Rejected);
            cause.into()
        })
    }
}
