//! A job, as others than its [`Task`](super::Task) see it: [`JobContext`] is for the job's own
//! code, [`AbortHandle`] cancels the job from elsewhere.

use std::error::Error;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use super::{Cancel, Runnable};
use crate::error::{CloseReason, JoinError};

/// Tells a closure whether its job should go on.
///
/// [`Handle::spawn_cpu_with`](crate::Handle::spawn_cpu_with) passes it to the closure.
/// It is cheap to clone and can be sent to other threads, so rayon children capture it
/// like any variable. No thread-local lookup is involved: a child cannot see the
/// cancellation of another job.
///
/// # Examples
///
/// ```
/// # let io = tokio::runtime::Runtime::new().unwrap();
/// # let _io = io.enter();
/// # let cpu = twolane::CpuRuntime::new().unwrap();
/// use rayon::prelude::*;
/// let sum = cpu.spawn_cpu_with(|job| {
///     (0..1000_u64).into_par_iter().try_fold(|| 0, |sum, n| {
///         job.checkpoint()?; // stops soon after the task is dropped
///         Ok(sum + n)
///     }).try_reduce(|| 0, |a, b| Ok(a + b))
/// });
/// assert_eq!(sum.wait().unwrap(), 499_500);
/// ```
#[derive(Clone)]
pub struct JobContext {
    pub(super) job: Arc<dyn Runnable>,
}

impl JobContext {
    /// Returns an error once the job should end, for use with `?`.
    ///
    /// Call it now and then in a long loop, and return early on an error. It costs
    /// three atomic loads. If the job has a [deadline](crate::Handle::with_deadline),
    /// it also reads the clock.
    ///
    /// # Errors
    ///
    /// Returns [`Cancelled`] once the job's task was dropped or aborted, its deadline
    /// has passed, or its lane shuts down. A closure that returns this error ends as the
    /// [`JoinError`] of that reason.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.spawn_cpu_with(|job| {
    ///     let mut n = 0;
    ///     loop {
    ///         job.checkpoint()?;
    ///         n += 1;
    ///         if n == 1_000 { return Ok(n) }
    ///     }
    /// });
    /// assert_eq!(task.wait().unwrap(), 1_000);
    /// ```
    pub fn checkpoint(&self) -> Result<(), Cancelled> {
        let end = self.job.end_request();
        end.map_or(Ok(()), |reason| Err(Cancelled { reason }))
    }

    /// Runs `f` with the `tracing` span and subscriber of the job's submission.
    ///
    /// A rayon child on another thread does not have them otherwise. Without the
    /// `tracing` feature this method only runs `f`.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.spawn_cpu_with(|job| {
    ///     Ok(rayon::join(|| job.in_span(|| 1), || job.in_span(|| 2)))
    /// });
    /// assert_eq!(task.wait().unwrap(), (1, 2));
    /// ```
    pub fn in_span<R>(&self, f: impl FnOnce() -> R) -> R {
        let (mut f, mut result) = (Some(f), None);
        self.job.in_span(&mut || result = f.take().map(|f| f()));
        result.expect("a span's scope runs its closure once")
    }
}

// As in Tokio. A panic never leaves the lane's data half-changed, since the lane
// catches every panic of user code.
impl UnwindSafe for JobContext {}
impl RefUnwindSafe for JobContext {}

debug_by_name!(JobContext, cancelled: |it: &Self| it.checkpoint().is_err());

/// The error of [`JobContext::checkpoint`]: the job should end.
///
/// The job was aborted, its task was dropped, its deadline has passed, or its lane
/// shuts down. The closure of a [`spawn_cpu_with`](crate::Handle::spawn_cpu_with) returns it
/// with `?`, and its task then returns the [`JoinError`] of that reason. Only a checkpoint makes
/// one.
///
/// # Examples
///
/// ```
/// fn rows(job: &twolane::JobContext, n: u32) -> Result<u32, twolane::Cancelled> {
///     for _ in 0..n {
///         job.checkpoint()?;
///     }
///     Ok(n)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancelled {
    reason: CloseReason,
}

/// For functions that return a `JoinError` of other jobs as well.
impl From<Cancelled> for JoinError {
    fn from(cancelled: Cancelled) -> Self {
        cancelled.reason.into()
    }
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the job is to end: {}", JoinError::from(self.reason))
    }
}

impl Error for Cancelled {}

/// Cancels a job from elsewhere; see [`Task::abort_handle`](crate::Task::abort_handle).
///
/// It keeps the job's memory, but not the output, which is dropped with the task.
#[derive(Clone)]
pub struct AbortHandle {
    /// `None` if there was nothing left to cancel.
    pub(super) job: Option<Arc<dyn Cancel>>,
}

impl AbortHandle {
    /// Requests the end of the job, as [`Task::abort`](crate::Task::abort) does.
    ///
    /// # Examples
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

    /// Returns whether the job has ended, as [`Task::is_finished`](crate::Task::is_finished) does.
    ///
    /// # Examples
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

debug_by_name!(AbortHandle, finished: Self::is_finished);
