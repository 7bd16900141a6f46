//! [`Task`]: the handle by which an awaiter gets the output of a job.

use std::mem;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::task::coop;

use super::{AbortHandle, Cancel, IoJoin, Join, block_on, ticker};
use crate::error::{CloseReason, JoinError, JoinErrorKind};
use crate::panics::run_hook;
use crate::sync::Ordering::SeqCst;
use crate::trace::{note_dropped_task, warn_of_lost_jobs};

/// A handle to a submitted job: a future of `Result<T, JoinError>`.
///
/// **Dropping it cancels the job.** A closure that is still queued never runs. A future
/// is not polled again; a thread of its lane drops it. A closure that runs is not
/// stopped, but sees the cancellation by
/// [`JobContext::checkpoint`](crate::JobContext::checkpoint). So a timeout or a
/// `select!` around a task cancels the job too. Call [`detach`](Self::detach) if the job
/// should run on.
///
/// A task does not keep its runtime alive. If a shutdown ends the job, the task
/// resolves with [`JoinErrorKind::Shutdown`](crate::JoinErrorKind::Shutdown); it never hangs.
///
/// # Many tasks
///
/// This crate has no `JoinSet`. A task is a future that owns its job, so the tools of
/// the `futures` crate for many futures do the same:
///
/// - Results as they come: `FuturesUnordered`.
/// - Results in order: `FuturesOrdered`.
/// - All results or the first error, which cancels the rest: `try_join_all`. If the
///   jobs return a `Result`, use it over `async { task.await? }`.
/// - No more than n at once: `StreamExt::buffer_unordered(n)`.
/// - No more than the lane can take, whatever else is submitted:
///   [`Handle::reserve`](crate::Handle::reserve) before the input is read.
/// - `abort_all`: `tasks.iter().for_each(Task::abort)`. If you do not need the
///   results, clear or drop the collection.
/// - `detach_all`: `tasks.into_iter().for_each(Task::detach)`.
///
/// Awaiting a task consumes Tokio's cooperative budget. A future that finds more than
/// 128 finished tasks in one poll is polled again for the rest. In a `join_all` over
/// many thousands of tasks these polls add up, as they do with Tokio's own join
/// handles. Await the tasks in a loop instead, or wrap the `join_all` in
/// `tokio::task::coop::unconstrained`.
///
/// A panic in a job affects its own task only. As with Tokio's tasks, the work of a job that
/// panics is dropped while the panic unwinds. A destructor that panics then, too, is logged.
/// So is one that panics while the work of a cancelled job is dropped: the task of that job
/// ends as [cancelled](JoinError::is_cancelled), where Tokio's would end as a panic.
///
/// Dropping a task does not wait. To wait for the end of a job that has begun, call
/// [`abort`](Self::abort) and then await the task: what the job holds is dropped by then, unless
/// its lane was shut down or its deadline passed before.
///
/// # Panics
///
/// Polling it again after it has returned its output panics, as with most futures.
///
/// # Cancel safety
///
/// Awaiting `&mut task` is cancel safe: the task keeps an output that it has not
/// returned yet.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let task = cpu.spawn_cpu(|| (1..=20_u64).product::<u64>());
/// assert_eq!(task.await.unwrap(), 2_432_902_008_176_640_000);
/// # }
/// ```
///
/// Many tasks:
///
/// ```
/// use futures::stream::{self, FuturesUnordered, StreamExt, TryStreamExt};
/// # #[tokio::main] async fn main() -> Result<(), twolane::JoinError> {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// // As they come.
/// let mut tasks: FuturesUnordered<_> = (0..8_u64).map(|n| cpu.spawn_cpu(move || n * n)).collect();
/// let mut sum = 0;
/// while let Some(square) = tasks.next().await {
///     sum += square?; // an early return drops the other tasks, which cancels their jobs
/// }
/// // Four at once; the input is read no faster than that.
/// let squares = stream::iter(0..100_u64).map(|n| cpu.spawn_cpu(move || n * n));
/// let squares: Vec<u64> = squares.buffer_unordered(4).try_collect().await?;
/// # assert_eq!((sum, squares.len()), (140, 100));
/// # Ok(()) }
/// ```
#[must_use = "dropping a `Task` cancels its job: await it, or call `detach` to let the job run on"]
pub struct Task<T>(Inner<T>);

enum Inner<T> {
    Job(Arc<dyn Join<T>>),
    /// A future on the I/O lane.
    Io(IoJoin<T>),
    /// The lane did not accept the job.
    Refused(JoinError),
    /// The task has returned its output, or was detached.
    Over,
}

impl<T> Task<T> {
    pub(crate) fn new(job: Arc<dyn Join<T>>) -> Self {
        Self(Inner::Job(job))
    }

    pub(crate) fn on_io(future: IoJoin<T>) -> Self {
        Self(Inner::Io(future))
    }

    pub(crate) fn refused(reason: JoinError) -> Self {
        Self(Inner::Refused(reason))
    }

    fn take_job(&mut self) -> Inner<T> {
        mem::replace(&mut self.0, Inner::Over)
    }

    fn as_cancel(&self) -> Option<Arc<dyn Cancel>> {
        match &self.0 {
            Inner::Job(job) => Some(job.clone().as_cancel()),
            Inner::Io(future) => Some(future.as_cancel()),
            Inner::Refused(_) | Inner::Over => None,
        }
    }

    /// Lets the job run on without an awaiter, and drops its output.
    ///
    /// With the feature `tracing` these events go to the log, since there is no
    /// awaiter:
    ///
    /// - a panic in the job;
    /// - a shutdown before the job's end, the end of the I/O runtime, or a full queue: a warning
    ///   with the number of such jobs.
    ///
    /// A deadline that ends the job is only counted
    /// ([`Metrics::expired`](crate::metrics::Metrics)). Of a `spawn_io` that the end of the I/O
    /// runtime drops, nothing is logged: it is a Tokio task, and Tokio does not tell of it.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let (done, finished) = std::sync::mpsc::channel();
    /// cpu.spawn_cpu(move || done.send(42).unwrap()).detach();
    /// assert_eq!(finished.recv().unwrap(), 42);
    /// ```
    pub fn detach(mut self) {
        match self.take_job() {
            Inner::Job(job) => job.drop_join_handle(true),
            Inner::Io(IoJoin {
                exempt: Some(it), ..
            }) => it.store(false, SeqCst),
            Inner::Refused(why) if why.kind() != JoinErrorKind::Expired => warn_of_lost_jobs(1),
            _ => {}
        }
    }

    pub(crate) fn detach_quietly(mut self) {
        if let Inner::Job(job) = self.take_job() {
            job.drop_join_handle(false);
        }
    }

    /// Requests the end of the job, and returns at once.
    ///
    /// The effect depends on what the job is doing:
    ///
    /// - A queued job that has never run ends by this call. Awaiting the task gives
    ///   [`JoinError::is_cancelled`] immediately, and the lane drops the job's captures
    ///   in its turn. Until then a queue with a [limit](crate::Builder::queue_limit) counts the
    ///   job: right after, it may be full. [`reserve`](crate::Handle::reserve) waits for the place.
    /// - A suspended future is queued, and dropped by a thread of the lane. Awaiting the task gives
    ///   the error after that, as in Tokio: so a file or a lock that the future held is free. A
    ///   future that was woken, and waits for a thread, is dropped in its turn.
    /// - A running future goes on until its next `.await` that has to wait, and is dropped then.
    /// - A running closure goes on until it returns, or until its next
    ///   [`checkpoint`](crate::JobContext::checkpoint).
    /// - A future of `spawn_io` ends when the I/O lane comes to it and drops it, or with the
    ///   output of the poll that runs.
    ///
    /// If a running job ends with an output all the same, the task gives that output.
    /// Calling `abort` twice, or after the end, does nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.spawn(std::future::pending::<()>());
    /// task.abort();
    /// task.abort();
    /// assert!(task.wait().unwrap_err().is_cancelled());
    /// ```
    pub fn abort(&self) {
        self.abort_handle().abort();
    }

    /// Returns a handle that cancels the job from elsewhere, while the owner awaits.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.spawn(std::future::pending::<()>());
    /// let abort = task.abort_handle();
    /// let (joined, ()) = tokio::join!(task, async move { abort.abort() });
    /// assert!(joined.unwrap_err().is_cancelled());
    /// # }
    /// ```
    pub fn abort_handle(&self) -> AbortHandle {
        let job = self.as_cancel();
        AbortHandle { job }
    }

    /// Limits the wait, from this call on: if the output is not there in time, the job is
    /// cancelled, as by a drop, and the error is
    /// [`JoinErrorKind::Expired`](crate::JoinErrorKind::Expired).
    ///
    /// A service answers 503 to that error, as to a full queue ([`JoinError::is_unavailable`]). The
    /// job counts as cancelled. Unlike a [deadline](crate::Handle::with_deadline), the limit is a
    /// timer: its error comes in time, whatever the lane does. A deadline saves the work that is
    /// late, so a service that limits both sets a deadline too.
    ///
    /// The time is real, and a thread of the process measures it, to some milliseconds. So it passes
    /// whatever becomes of the lane and its I/O runtime. For two kinds of tasks it is the clock of a
    /// Tokio runtime, which a test may pause: for that of a `spawn_io` the runtime that calls this, and
    /// on a lane with `hold_paused_clock` the I/O runtime.
    ///
    /// Dropping the future cancels the job. To await it by `&mut`, pin it.
    ///
    /// # Panics
    ///
    /// For these two kinds, if there is no such runtime, or it has no timers (Tokio's `enable_time`).
    /// So does the returned future if that runtime ends first.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use std::time::Duration;
    /// use twolane::{CpuRuntime, JoinErrorKind};
    /// let cpu = CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.spawn_cpu(|| 42).within(Duration::from_secs(60)).await.unwrap(), 42);
    /// let never = cpu.spawn(std::future::pending::<()>());
    /// let late = never.within(Duration::from_millis(1)).await.unwrap_err();
    /// assert!(late.kind() == JoinErrorKind::Expired && late.is_unavailable());
    /// # }
    /// ```
    #[track_caller]
    pub fn within(self, limit: Duration) -> impl Future<Output = Result<T, JoinError>> + use<T> {
        let timers = match &self.0 {
            Inner::Io(_) => None,
            Inner::Job(job) => job.held_clock().cloned().or_else(ticker::timers),
            Inner::Refused(_) | Inner::Over => ticker::timers(),
        };
        let in_time = ticker::in_time(timers, limit, self);
        async move { in_time.await.unwrap_or(Err(CloseReason::Expired.into())) }
    }

    /// Returns whether the job has ended, with or without an output.
    ///
    /// If so, awaiting the task does not wait.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let mut task = cpu.spawn_cpu(|| 42);
    /// assert_eq!((&mut task).await.unwrap(), 42);
    /// assert!(task.is_finished());
    /// # }
    /// ```
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Inner::Job(job) => job.has_ended(),
            Inner::Io(future) => future.task.is_finished(),
            Inner::Refused(_) | Inner::Over => true,
        }
    }

    /// Blocks the current thread until the output is there.
    ///
    /// Use it on threads that run no async code. In async code, `.await` the task.
    ///
    /// Where you may call it, for a CPU job of this lane or for a `spawn_io`:
    ///
    /// - `main`, a thread of your own, the closure of a `spawn_blocking`: yes, for
    ///   both.
    /// - A thread of another lane: yes, for a CPU job unless that job's lane waits for this
    ///   thread.
    /// - A closure of this lane, a rayon child of one, an
    ///   [`install`](crate::Handle::install)ed one: for a CPU job it **panics**, since
    ///   it would wait for itself. For a `spawn_io` yes, even on a lane of one thread.
    /// - A future of this lane, between its `.await`s: for a CPU job it **panics**. For
    ///   a `spawn_io` it works, but blocks the thread: `.await` it.
    /// - Async code on any other thread, such as a handler: it **panics**, as
    ///   `blocking_recv` of Tokio does. `block_in_place` allows it.
    ///
    /// The same is true of [`Reserve::wait`](crate::future::Reserve::wait), with one difference: on
    /// a thread of the lane it does not wait at all, since a submission there needs no
    /// permit. In async code on any other thread
    /// [`Shutdown::wait`](crate::future::Shutdown::wait) and
    /// [`Handle::install`](crate::Handle::install) panic as well.
    ///
    /// One case is not detected: a closure waits for a `spawn_io` whose future awaits a
    /// job of the same lane. This works while the lane has a free thread. If all
    /// threads of the lane wait like that, it hangs. Use a future instead of the
    /// closure.
    ///
    /// # Errors
    ///
    /// As for awaiting the task.
    ///
    /// # Panics
    ///
    /// Panics on a thread of the CPU lane, for a job of the same lane, whatever its
    /// priority: the lane would wait for itself. Use a future there, and `.await` the
    /// task. Panics on a thread that polls tasks of another Tokio runtime, unless the job has
    /// ended: those tasks would wait, in silence.
    ///
    /// # Examples
    ///
    /// ```
    /// let io = tokio::runtime::Runtime::new().unwrap();
    /// let cpu = twolane::CpuRuntime::builder().io_handle(io.handle().clone()).build().unwrap();
    /// assert_eq!(cpu.spawn_cpu(|| 6 * 7).wait().unwrap(), 42);
    /// ```
    #[track_caller]
    pub fn wait(self) -> Result<T, JoinError> {
        let waits_for_own_lane =
            matches!(&self.0, Inner::Job(job) if !job.has_ended() && job.is_own_worker());
        assert!(
            !waits_for_own_lane,
            "`Task::wait` on a thread of the CPU lane, for a job of the same lane: \
             it would wait for itself. Await the task in a future given to `spawn`"
        );
        block_on(self)
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let budget = match self.0 {
            // Tokio's join handle consumes it.
            Inner::Io(_) => None,
            _ => Some(ready!(coop::poll_proceed(cx))),
        };
        let output = match &mut self.0 {
            Inner::Job(job) => ready!(job.poll(cx)),
            Inner::Io(future) => ready!(future.poll(cx)),
            Inner::Refused(reason) => Err(mem::replace(reason, CloseReason::ShutDown.into())),
            Inner::Over => panic!("a `Task` was polled after it had returned its output"),
        };
        if let Some(budget) = budget {
            budget.made_progress();
        }
        self.take_job();
        Poll::Ready(output)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        match self.take_job() {
            Inner::Job(job) => {
                let never_began = job.clone().as_cancel().cancel();
                job.drop_join_handle(false);
                if let Some(site) = never_began {
                    run_hook("the log", || note_dropped_task(site));
                }
            }
            Inner::Io(future) => future.task.abort(),
            Inner::Refused(_) | Inner::Over => {}
        }
    }
}

// As in Tokio. A panic never leaves the lane's data half-changed, since the lane
// catches every panic of user code.
impl<T> UnwindSafe for Task<T> {}
impl<T> RefUnwindSafe for Task<T> {}

debug_by_name!(Task<T>, finished: Self::is_finished);
