//! Ways into the queue: at once or not at all, and, where it has a limit
//! ([`Builder::queue_limit`](crate::Builder::queue_limit)), by waiting for a place
//! or by getting the closure back. How places go round: `lane/gate.rs`.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Instant;

use crate::error::JoinError;
use crate::handle::Handle;
use crate::job::state::Cause;
use crate::job::{ClosureWork, Extras, FutureWork, Job, Work};
use crate::job_context::{self, Parent};
use crate::lane::{Expire, Level, Outcome, Place, Waiter};
use crate::task::{Task, block_on};

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

/// A place, if the level has a limit, and whatever is submitted here does not go
/// in by its parent's.
fn enter(level: &Level, deadline: Option<Instant>) -> Result<Option<Place>, Cause> {
    if let Some(cause) = refusal(level, deadline) {
        return Err(cause);
    }
    let Some(gate) = level.gate() else {
        return Ok(None);
    };
    match job_context::parent(level.lane()) {
        Parent::With(place) => Ok(Some(place)),
        Parent::Without => Ok(None),
        Parent::None if gate.try_enter() => Ok(Some(Place::new(level.clone()))),
        Parent::None => Err(Cause::QueueFull),
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
                Err(Rejected {
                    work,
                    cause: cause.into(),
                })
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
        Admit {
            handle: self.clone(),
            deadline: None,
            waiter: None,
        }
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

/// A place in the queue, not yet used. Dropped, it goes to the next.
///
/// From [`Handle::admit`] and [`Handle::try_admit`]. It spawns by the handle that
/// it came from.
#[must_use = "it is a place in the queue, which nobody else can have: spawn by it"]
pub struct Permit {
    handle: Handle,
    place: Option<Place>,
    deadline: Option<Instant>,
}

impl Permit {
    fn enter(handle: &Handle, deadline: Option<Instant>) -> Result<Self, Cause> {
        let place = enter(handle.level(), deadline)?;
        Ok(Self {
            handle: handle.clone(),
            place,
            deadline,
        })
    }

    /// From then on nobody wants the job: if it has not started it never will, and
    /// its task says so ([`JoinError::is_expired`]) at the deadline, not when its
    /// turn comes. One that has started is as if it was
    /// [cancelled](Task::cancel): a suspended future is dropped, a closure sees it
    /// by [`checkpoint`](crate::checkpoint).
    ///
    /// The clock is the lane's own, which needs no timer of a runtime, and counts
    /// in milliseconds. Of two deadlines the earlier holds.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use std::time::{Duration, Instant};
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let received = Instant::now(); // ... and the client waits for a second
    /// let permit = cpu.handle().admit().await.unwrap();
    /// let task = permit.with_deadline(received + Duration::from_secs(1)).spawn_cpu(|| 42);
    /// assert_eq!(task.await.unwrap(), 42);
    /// # }
    /// ```
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(earlier(self.deadline, deadline));
        self
    }

    /// As [`Handle::spawn_cpu`], by this place.
    ///
    /// # Errors
    /// None here. The task says what went wrong, a lane that was shut down
    /// meanwhile too: [`JoinError`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let permit = cpu.handle().admit().await.unwrap();
    /// assert_eq!(permit.spawn_cpu(|| 6 * 7).await.unwrap(), 42);
    /// # }
    /// ```
    pub fn spawn_cpu<F, T>(self, f: F) -> Task<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.submit(ClosureWork::new(f))
    }

    /// As [`Handle::spawn`], by this place.
    ///
    /// # Errors
    /// As [`spawn_cpu`](Self::spawn_cpu).
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let permit = cpu.handle().admit().await.unwrap();
    /// assert_eq!(permit.spawn(async { 6 * 7 }).await.unwrap(), 42);
    /// # }
    /// ```
    pub fn spawn<F>(self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.submit(FutureWork::new(future))
    }

    fn submit<W: Work>(self, work: W) -> Task<W::Output> {
        let level = self.handle.level();
        match refusal(level, self.deadline) {
            None => take_on(level, self.place, self.deadline, work),
            Some(cause) => refuse(level, cause, work),
        }
    }
}

fn earlier(one: Option<Instant>, other: Instant) -> Instant {
    one.map_or(other, |one| one.min(other))
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("priority", &self.handle.priority())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Waits for a place in the queue; see [`Handle::admit`].
#[must_use = "futures do nothing unless awaited"]
pub struct Admit {
    handle: Handle,
    deadline: Option<Instant>,
    /// Since the first poll that found no place, until the last.
    waiter: Option<Arc<Waiter>>,
}

impl Admit {
    /// The [deadline](Permit::with_deadline) of the job that the place is for,
    /// which holds for the wait as well. (One that is set after the first poll
    /// holds for the job alone.)
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use std::time::{Duration, Instant};
    /// use twolane::{CpuRuntime, Priority};
    /// let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, 1).build().unwrap();
    /// let held = cpu.handle().admit().await.unwrap();
    /// let soon = Instant::now() + Duration::from_millis(5);
    /// let late = cpu.handle().admit().with_deadline(soon).await;
    /// assert!(late.unwrap_err().is_expired());
    /// # drop(held);
    /// # }
    /// ```
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(earlier(self.deadline, deadline));
        self
    }

    /// Waits on a plain thread, which sleeps meanwhile; see [`Task::wait`] for what
    /// that is. Inside a job it does not wait.
    ///
    /// # Errors
    /// As awaiting it.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.handle().admit().wait().unwrap().spawn_cpu(|| 1).wait().unwrap(), 1);
    /// ```
    pub fn wait(self) -> Result<Permit, JoinError> {
        block_on(self)
    }

    fn start(&mut self) -> Poll<Result<Permit, Cause>> {
        let level = self.handle.level();
        let gate = match (Permit::enter(&self.handle, self.deadline), level.gate()) {
            (Err(Cause::QueueFull), Some(gate)) => gate,
            (entered, _) => return Poll::Ready(entered),
        };
        let waiter = Waiter::new();
        if let Some(deadline) = self.deadline {
            let waiter: Weak<dyn Expire> = Arc::downgrade(&waiter) as _;
            level.lane().end_at(deadline, waiter);
        }
        self.waiter = Some(waiter.clone());
        gate.wait(waiter);
        Poll::Pending
    }
}

impl Future for Admit {
    type Output = Result<Permit, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.waiter.is_none() {
            if let Poll::Ready(entered) = this.start() {
                return Poll::Ready(this.counted(entered));
            }
        }
        let waiter = this.waiter.as_ref().expect("it was made above");
        let Poll::Ready(outcome) = waiter.poll(cx) else {
            if this.handle.level().lane().process.is_elsewhere() {
                return Poll::Ready(Err(JoinError::forked()));
            }
            return Poll::Pending;
        };
        this.waiter = None;
        let entered = match outcome {
            Outcome::LetIn => Ok(Permit {
                handle: this.handle.clone(),
                place: Some(Place::new(this.handle.level().clone())),
                deadline: this.deadline,
            }),
            Outcome::Closed => Err(Cause::ShutDown),
            Outcome::Expired => Err(Cause::Expired),
        };
        Poll::Ready(this.counted(entered))
    }
}

impl Admit {
    fn counted(&self, entered: Result<Permit, Cause>) -> Result<Permit, JoinError> {
        if entered.is_err() {
            self.handle.level().books().note_rejected();
        }
        entered.map_err(JoinError::from)
    }
}

impl Drop for Admit {
    fn drop(&mut self) {
        if let (Some(waiter), Some(gate)) = (self.waiter.take(), self.handle.level().gate()) {
            if waiter.leave() {
                gate.leave();
            }
        }
    }
}

impl Expire for Waiter {
    fn expire(self: Arc<Self>) {
        Waiter::expire(&self);
    }
}

impl fmt::Debug for Admit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admit")
            .field("priority", &self.handle.priority())
            .field("deadline", &self.deadline)
            .field("waits", &self.waiter.is_some())
            .finish_non_exhaustive()
    }
}

/// A closure or future that was not taken on, and why.
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// cpu.shutdown().await;
/// let rejected = cpu.handle().try_spawn_cpu(|| 42).unwrap_err();
/// assert!(rejected.cause().is_shutdown());
/// assert_eq!(rejected.into_inner()(), 42);
/// # }
/// ```
pub struct Rejected<F> {
    work: F,
    cause: JoinError,
}

impl<F> Rejected<F> {
    /// What was to be run.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let run_here = |closure: fn() -> u8| closure();
    /// let answer = match cpu.handle().try_spawn_cpu((|| 42) as fn() -> u8) {
    ///     Ok(task) => task.wait().unwrap(),
    ///     Err(rejected) => run_here(rejected.into_inner()),
    /// };
    /// # assert_eq!(answer, 42);
    /// ```
    pub fn into_inner(self) -> F {
        self.work
    }

    /// Why: [`JoinError::is_queue_full`] if it is worth trying again.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// cpu.shutdown_background();
    /// assert!(cpu.handle().try_spawn_cpu(|| 42).unwrap_err().cause().is_shutdown());
    /// ```
    pub fn cause(&self) -> &JoinError {
        &self.cause
    }
}

impl<F> Rejected<F> {
    pub(crate) fn into_parts(self) -> (F, JoinError) {
        (self.work, self.cause)
    }
}

/// For `?`: drops the closure.
impl<F> From<Rejected<F>> for JoinError {
    fn from(rejected: Rejected<F>) -> Self {
        rejected.cause
    }
}

impl<F> fmt::Debug for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejected")
            .field("cause", &self.cause)
            .finish_non_exhaustive()
    }
}

impl<F> fmt::Display for Rejected<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl<F> Error for Rejected<F> {}
