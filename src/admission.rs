//! Ways into the queue: at once or not at all, and, where it has a limit
//! ([`Builder::queue_limit`](crate::Builder::queue_limit)), by waiting for a place
//! or by getting the closure back. How places go round: `lane/gate.rs`.

mod admit;
mod permit;
mod rejected;

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use crate::error::JoinError;
use crate::handle::Handle;
use crate::job::state::Cause;
use crate::job::{ClosureWork, Extras, FutureWork, Job, Work};
use crate::job_context::{self, Parent};
use crate::lane::{Level, Place};
use crate::task::Task;
pub use admit::Admit;
pub use permit::Permit;
pub use rejected::Rejected;

/// At once, or not at all.
pub(crate) fn submit<W: Work>(handle: &Handle, work: W) -> Task<W::Output> {
    match enter(handle.level(), None) {
        Ok(place) => take_on(handle.level(), place, None, work),
        Err(cause) => refuse(handle.level(), cause, work),
    }
}

fn refuse<W: Work>(level: &Level, cause: Cause, work: W) -> Task<W::Output> {
    level.books().note_rejected();
    // On this thread, where a destructor that panics is the caller's as with any
    // value that it drops.
    drop(work);
    Task::refused(cause)
}

/// The parent's place, if there is a parent; else one of the level's own, if it has
/// a limit.
fn enter(level: &Level, deadline: Option<Instant>) -> Result<Option<Place>, Cause> {
    if let Some(cause) = refusal(level, deadline) {
        return Err(cause);
    }
    // Before the gate: by way of a priority that has no limit, a job may submit to
    // its own again.
    match (job_context::parent(level.lane()), level.gate()) {
        (Parent::With(place), _) => Ok(Some(place)),
        (Parent::Without, _) | (Parent::None, None) => Ok(None),
        (Parent::None, Some(gate)) if gate.try_enter() => Ok(Some(Place::new(level.clone()))),
        (Parent::None, Some(_)) => Err(Cause::QueueFull),
    }
}

/// Why nothing may be submitted now, whether there is a place or not.
fn refusal(level: &Level, deadline: Option<Instant>) -> Option<Cause> {
    let is_late = || deadline.is_some_and(|deadline| deadline <= Instant::now());
    let lanes = level.lane().refusal();
    lanes.or_else(|| is_late().then_some(Cause::Expired))
}

fn take_on<W: Work>(
    level: &Level,
    place: Option<Place>,
    deadline: Option<Instant>,
    work: W,
) -> Task<W::Output> {
    let extras = Extras::of_job(level.lane(), place, deadline);
    let job = Job::new(level.clone(), work, extras);
    let task = Task::new(job.clone());
    job.submitted();
    if let Some(deadline) = deadline {
        let weak = Arc::downgrade(&job);
        level.lane().end_at(deadline, weak);
    }
    level.enqueue(job);
    task
}

impl Handle {
    /// As [`spawn_cpu`](Self::spawn_cpu), and hands the closure back if the job is
    /// not taken on: to be run here, later, elsewhere, or not at all.
    ///
    /// # Errors
    /// [`Rejected`]: the queue has a [limit](crate::Builder::queue_limit) and is
    /// full, or others wait for a place; or the lane takes on nothing at all.
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
        match enter(level, None) {
            Ok(place) => Ok(take_on(level, place, None, into_work(work))),
            Err(cause) => {
                level.books().note_rejected();
                Err(Rejected::new(work, cause.into()))
            }
        }
    }

    /// Waits for a place in the queue: backpressure. At once where it has no
    /// [limit](crate::Builder::queue_limit), and inside a job, which has one
    /// already.
    ///
    /// First come first served, from the first poll on. The future resolves to a
    /// [`Permit`], which spawns. On a plain thread: [`Admit::wait`].
    ///
    /// # Errors
    /// [`JoinError::is_shutdown`], also if that comes while it waits;
    /// [`JoinError::is_io_runtime_gone`]; [`JoinError::is_expired`] with a
    /// [deadline](Admit::with_deadline).
    ///
    /// # Cancel safety
    /// Dropping it gives up its turn, and loses nothing else: a place that was
    /// given to it meanwhile goes to the next.
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

    /// A place in the queue, if there is one now: before there is a closure, or
    /// anything else that its job needs.
    ///
    /// # Errors
    /// [`JoinError::is_queue_full`], also if others wait for a place;
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
        Permit::enter(self, None).map_err(|cause| {
            self.level().books().note_rejected();
            cause.into()
        })
    }
}
