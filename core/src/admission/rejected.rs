//! [`Rejected`]: what the `try_` methods return for refused work.

use std::error::Error;
use std::fmt;

use crate::error::JoinError;

/// A closure or future that the lane refused, and the reason.
///
/// Returned by [`Handle::try_spawn_cpu`](crate::Handle::try_spawn_cpu) and
/// [`Handle::try_spawn`](crate::Handle::try_spawn).
///
/// # Examples
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
    pub(super) fn new(work: F, cause: JoinError) -> Self {
        Self { work, cause }
    }

    /// Returns the closure or future.
    ///
    /// # Examples
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

    /// Returns the reason.
    ///
    /// If it is [`JoinError::is_queue_full`], a later try may succeed.
    ///
    /// # Examples
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

    /// Returns the closure or future, and the reason.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// cpu.shutdown_background();
    /// let (closure, cause) = cpu.handle().try_spawn_cpu(|| 42).unwrap_err().into_parts();
    /// assert_eq!((closure(), cause.is_shutdown()), (42, true));
    /// ```
    pub fn into_parts(self) -> (F, JoinError) {
        (self.work, self.cause)
    }
}

/// For `?`: drops the closure or future.
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
