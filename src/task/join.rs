//! [`Task`]: the awaiting side of a job.

use std::fmt;
use std::future::Future;
use std::mem;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::task::{JoinHandle, coop};

use super::{Cancel, Join, RegistryKey};
use crate::block_on::block_on;
use crate::error::{CloseReason, JoinError};
use crate::trace::warn_of_lost_jobs;

/// A job that was submitted, as the one who waits for it has it: a future of
/// `Result<T, JoinError>`.
///
/// **Dropping it cancels the job.** A closure that is still queued never runs;
/// a future is dropped instead of being polled again, on a thread of its lane;
/// a closure that runs is not stopped, but sees it by
/// [`JobContext::checkpoint`](crate::JobContext::checkpoint). So a timeout or a `select!` around a task stops
/// the work too. Call [`detach`](Self::detach) where it shall go on.
///
/// A task does not keep its runtime: after a shutdown it says so
/// ([`JoinError::is_shutdown`]) and never hangs.
///
/// # Panics
/// Polling it again after it has returned its output panics, as with most
/// futures.
///
/// # Cancel safety
/// Awaiting `&mut task` is cancel safe: an output not yet returned stays there.
///
/// # Many tasks
/// There is no `JoinSet` here: a task is a future that owns its job, so what
/// the `futures` crate has for many futures does all that one would.
///
/// | for | use |
/// |---|---|
/// | results as they come | `FuturesUnordered` |
/// | results in order | `FuturesOrdered` |
/// | all or the first error, which cancels the rest | `try_join_all`; of jobs that return a `Result`, over `async { task.await? }` |
/// | no more than n at once | `StreamExt::buffer_unordered(n)` |
/// | no more than the lane can take, whoever else submits | [`Handle::admit`](crate::Handle::admit) before the input is read |
/// | `abort_all` | `tasks.iter().for_each(Task::cancel)`; or `clear`, or a drop, if nobody wants the results |
/// | `detach_all` | `tasks.into_iter().for_each(Task::detach)` |
///
/// Awaiting spends Tokio's cooperative budget: a future that finds more than 128
/// finished tasks in one poll is polled again for the rest. With a `join_all` over
/// many thousands of tasks that adds up, as it does with Tokio's own join handles;
/// await them in a loop, or put `tokio::task::coop::unconstrained` around it.
///
/// A panic is the result of its own task alone. Dropping waits for nothing: what
/// runs then sees it by [`JobContext::checkpoint`](crate::JobContext::checkpoint),
/// and to wait for its end, cancel and go on to await.
///
/// ```
/// use futures::stream::{self, FuturesUnordered, StreamExt, TryStreamExt};
/// # #[tokio::main] async fn main() -> Result<(), twolane::JoinError> {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// // As they come.
/// let mut tasks: FuturesUnordered<_> = (0..8_u64).map(|n| cpu.spawn_cpu(move || n * n)).collect();
/// let mut sum = 0;
/// while let Some(square) = tasks.next().await {
///     sum += square?; // an early return drops the others, and so cancels them
/// }
/// // Four at once; the input is read no faster than that.
/// let squares = stream::iter(0..100_u64).map(|n| cpu.spawn_cpu(move || n * n));
/// let squares: Vec<u64> = squares.buffer_unordered(4).try_collect().await?;
/// # assert_eq!((sum, squares.len()), (140, 100));
/// # Ok(()) }
/// ```
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let task = cpu.spawn_cpu(|| (1..=20_u64).product::<u64>());
/// assert_eq!(task.await.unwrap(), 2_432_902_008_176_640_000);
/// # }
/// ```
#[must_use = "dropping a `Task` cancels its job: await it, or call `detach` to let the job run on"]
pub struct Task<T> {
    inner: Inner<T>,
    /// Since it first had to wait, on `Backend::Runtime`.
    registered: Option<RegistryKey>,
    /// The job's Tokio task, if it is one. Only kept: Tokio frees a task's memory more
    /// cheaply here than on the worker that has run it.
    _tokio: Option<JoinHandle<()>>,
}

enum Inner<T> {
    Job(Arc<dyn Join<T>>),
    /// The job was never taken on.
    Refused(CloseReason),
    /// It has returned its output, or was detached.
    Over,
}

impl<T> Task<T> {
    pub(crate) fn new(job: Arc<dyn Join<T>>, tokio: Option<JoinHandle<()>>) -> Self {
        Self {
            inner: Inner::Job(job),
            registered: None,
            _tokio: tokio,
        }
    }

    pub(crate) fn refused(cause: CloseReason) -> Self {
        Self {
            inner: Inner::Refused(cause),
            registered: None,
            _tokio: None,
        }
    }

    fn take_job(&mut self) -> Inner<T> {
        let inner = mem::replace(&mut self.inner, Inner::Over);
        if let (Inner::Job(job), Some(key)) = (&inner, self.registered.take()) {
            job.unregister(key);
        }
        inner
    }

    fn as_cancel(&self) -> Option<Arc<dyn Cancel>> {
        match &self.inner {
            Inner::Job(job) => Some(job.clone().as_cancel()),
            Inner::Refused(_) | Inner::Over => None,
        }
    }

    /// Lets the job run on without anyone waiting for it. Its output is
    /// dropped. A panic in it goes to the log, and so does a shutdown that
    /// comes before its end, or a full queue (a warning, with the number of such
    /// jobs; feature `tracing`): there is nobody else to be told. A deadline that
    /// ends it is only counted ([`Metrics::expired`](crate::Metrics)).
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
            Inner::Job(job) => job.detach(),
            Inner::Refused(cause) if !cause.is_requested() => warn_of_lost_jobs(1),
            _ => {}
        }
    }

    /// Asks the job to end, and returns at once.
    ///
    /// One that is queued or suspended has ended by that: awaiting the task
    /// gives [`JoinError::is_cancelled`] immediately, and what the job had
    /// captured is dropped on its lane soon after. One that runs goes on: a
    /// future until its next `.await` that has to wait, a closure until it
    /// returns. If it ends with an output all the same, the task gives the
    /// output. What was given to `spawn_io` has ended at once in any case, and
    /// is dropped on the I/O lane. Calling it twice, or after the end, does
    /// nothing.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.spawn(std::future::pending::<()>());
    /// task.cancel();
    /// task.cancel();
    /// assert!(task.wait().unwrap_err().is_cancelled());
    /// ```
    pub fn cancel(&self) {
        if let Some(job) = self.as_cancel() {
            job.cancel();
        }
    }

    /// A handle to cancel the job with from elsewhere, while the owner awaits.
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
        AbortHandle {
            job: self.as_cancel(),
        }
    }

    /// Whether the job has ended, in whatever way: awaiting it gives its
    /// output without waiting.
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
        self.as_cancel().is_none_or(|job| job.has_ended())
    }

    /// Waits for the output on a plain thread, which sleeps meanwhile.
    ///
    /// For threads that run no async code. In async code, `.await` the task:
    /// waiting freezes a thread of the runtime there, and nothing warns of it.
    ///
    /// | on | for a CPU job of this lane | for a `spawn_io` |
    /// |---|---|---|
    /// | `main`, a thread of your own, the closure of a `spawn_blocking` | yes | yes |
    /// | a thread of another lane | yes, if no job there waits for this one | yes |
    /// | a closure of this lane, a rayon child of one, an [`install`](crate::Handle::install)ed one | **panics**: it would wait for itself | yes, on a lane of one thread too |
    /// | a future of this lane, between its `.await`s | **panics** | it works, and keeps the thread: `.await` it |
    /// | an I/O worker | it freezes that worker | on a `current_thread` runtime it hangs |
    ///
    /// The same goes for [`Admit::wait`](crate::Admit::wait), but that on a thread
    /// of the lane it does not wait at all: there, what is submitted goes in by the
    /// job's own permit. What is not seen: a closure that waits for a `spawn_io`
    /// whose future awaits a job of the lane. With a free thread that works; on a
    /// lane whose threads all wait like that it hangs. Let the closure be a future.
    ///
    /// # Errors
    /// As awaiting the task.
    ///
    /// # Panics
    /// On a thread of the CPU lane, for a job of that same lane, of whatever
    /// priority: the lane would wait for itself. Spawn a future and `.await`
    /// the task there.
    ///
    /// ```
    /// let io = tokio::runtime::Runtime::new().unwrap();
    /// let cpu = twolane::CpuRuntime::builder().io_handle(io.handle().clone()).build().unwrap();
    /// assert_eq!(cpu.spawn_cpu(|| 6 * 7).wait().unwrap(), 42);
    /// ```
    #[track_caller]
    pub fn wait(self) -> Result<T, JoinError> {
        let waits_for_own_lane = match &self.inner {
            Inner::Job(job) => job.is_own_worker(),
            _ => false,
        };
        if waits_for_own_lane && !self.is_finished() {
            panic!(
                "`Task::wait` on a thread of the CPU lane, for a job of the same lane: \
                 it would wait for itself. Await the task in a future given to `spawn`"
            );
        }
        block_on(self)
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let budget = ready!(coop::poll_proceed(cx));
        let this = &mut *self;
        let output = match &this.inner {
            Inner::Job(job) => match job.poll(cx) {
                Poll::Ready(output) => output,
                Poll::Pending if this.registered.is_none() && job.registers_awaited() => {
                    this.registered = job.clone().register();
                    // The lane may have closed before the job was in its registry.
                    ready!(job.poll(cx))
                }
                Poll::Pending => return Poll::Pending,
            },
            Inner::Refused(cause) => Err((*cause).into()),
            Inner::Over => panic!("a `Task` was polled after it had returned its output"),
        };
        budget.made_progress();
        self.take_job();
        Poll::Ready(output)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if let Inner::Job(job) = self.take_job() {
            job.clone().as_cancel().cancel();
            job.drop_join_handle();
        }
    }
}

// As Tokio's own: no panic passes through a lane's code half-way, since every
// call of foreign code in it is caught.
impl<T> UnwindSafe for Task<T> {}
impl<T> RefUnwindSafe for Task<T> {}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

/// Cancels a job from elsewhere; see [`Task::abort_handle`].
///
/// It keeps the job's memory, not the job: an output is dropped with its task.
#[derive(Clone)]
pub struct AbortHandle {
    /// None: there was nothing to cancel any more.
    job: Option<Arc<dyn Cancel>>,
}

impl AbortHandle {
    /// As [`Task::cancel`].
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.spawn(std::future::pending::<()>());
    /// let abort = task.abort_handle();
    /// std::thread::spawn(move || abort.abort());
    /// assert!(task.wait().unwrap_err().is_cancelled());
    /// ```
    pub fn abort(&self) {
        if let Some(job) = &self.job {
            job.clone().cancel();
        }
    }

    /// As [`Task::is_finished`].
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.spawn(std::future::pending::<()>());
    /// assert!(!task.abort_handle().is_finished());
    /// ```
    pub fn is_finished(&self) -> bool {
        self.job.as_ref().is_none_or(|job| job.has_ended())
    }
}

impl UnwindSafe for AbortHandle {}
impl RefUnwindSafe for AbortHandle {}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}
