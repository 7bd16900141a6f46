//! [`JobContext`]: the job as its own code sees it.

use std::error::Error;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use super::Run;

/// The job that a closure runs as: whether it is still wanted.
///
/// [`Handle::spawn_cpu_with`](crate::Handle::spawn_cpu_with) hands it to the
/// closure. It is cheap to clone and can be sent anywhere, so rayon children
/// capture it like any variable. There is nothing to look up, so no child can
/// mistake another job's cancel for its own.
///
/// ```
/// # let io = tokio::runtime::Runtime::new().unwrap();
/// # let _io = io.enter();
/// # let cpu = twolane::CpuRuntime::new().unwrap();
/// use rayon::prelude::*;
/// let sum = cpu.handle().spawn_cpu_with(|job| {
///     (0..1000_u64).into_par_iter().try_fold(|| 0, |sum, n| {
///         job.checkpoint()?; // stops soon after the task is dropped
///         Ok::<_, twolane::Cancelled>(sum + n)
///     }).try_reduce(|| 0, |a, b| Ok(a + b))
/// });
/// assert_eq!(sum.wait().unwrap(), Ok(499_500));
/// ```
#[derive(Clone)]
pub struct JobContext {
    job: Arc<dyn Run>,
}

impl JobContext {
    pub(crate) fn new(job: Arc<dyn Run>) -> Self {
        Self { job }
    }

    /// An error once the job is no longer wanted, for `?`.
    ///
    /// Call it now and then in a long loop and return early. It costs three loads;
    /// of a job that has a [deadline](crate::Permit::with_deadline), a reading of
    /// the clock as well (some 25 ns).
    ///
    /// # Errors
    /// [`Cancelled`] once the job's task was dropped or cancelled, its deadline has
    /// passed, or its lane shuts down.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.handle().spawn_cpu_with(|job| -> Result<u64, twolane::Cancelled> {
    ///     let mut n = 0;
    ///     loop {
    ///         job.checkpoint()?;
    ///         n += 1;
    ///         if n == 1_000 { return Ok(n) }
    ///     }
    /// });
    /// assert_eq!(task.wait().unwrap(), Ok(1_000));
    /// ```
    pub fn checkpoint(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() {
            Err(Cancelled)
        } else {
            Ok(())
        }
    }

    /// The same as a question.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.handle().spawn_cpu_with(|job| job.is_cancelled());
    /// assert_eq!(task.wait().unwrap(), false);
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.job.is_cancel_requested()
    }

    /// Runs `f` with the `tracing` span and subscriber that the job was
    /// submitted with, which a rayon child on another thread does not have.
    /// Without the `tracing` feature it just runs `f`.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.handle().spawn_cpu_with(|job| {
    ///     rayon::join(|| job.in_span(|| 1), || job.in_span(|| 2))
    /// });
    /// assert_eq!(task.wait().unwrap(), (1, 2));
    /// ```
    pub fn in_span<R>(&self, f: impl FnOnce() -> R) -> R {
        let mut f = Some(f);
        let mut result = None;
        self.job.in_span(&mut || {
            result = f.take().map(|f| f());
        });
        result.expect("a span's scope runs its closure once")
    }
}

// As Tokio's own: no panic passes through a lane's code half-way, since every
// call of foreign code in it is caught.
impl UnwindSafe for JobContext {}
impl RefUnwindSafe for JobContext {}

impl fmt::Debug for JobContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobContext")
            .field("cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// The job was cancelled, dropped, is past its deadline, or is on a lane that
/// shuts down. Returned by [`JobContext::checkpoint`].
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
#[non_exhaustive]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the job is to end: it was cancelled, its deadline passed, or its lane shuts down",
        )
    }
}

impl Error for Cancelled {}
