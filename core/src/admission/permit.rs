//! [`Permit`]: the right to submit one job.

use std::fmt;
use std::future::Future;
use std::time::Instant;

use tokio::sync::OwnedSemaphorePermit;

use crate::error::{CloseReason, JoinError};
use crate::lane::Level;
use crate::task::{
    Cancelled, Event, FutureWork, JobContext, Schedule, Task, Work, closure, closure_with,
};

/// The right to submit one job, not yet used.
///
/// Returned by [`Handle::reserve`](crate::Handle::reserve) and
/// [`Handle::try_reserve`](crate::Handle::try_reserve). It submits through the handle that
/// it came from. If it is dropped unused, it goes to the next waiter.
///
/// What needs no permit of its own, such as a stream, is limited by a permit that is held beside
/// it.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use twolane::{CpuRuntime, JoinError, Permit, Priority};
/// let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, 8).build().unwrap();
/// // It may pass through other functions before there is a job.
/// async fn compress(permit: Permit, body: Vec<u8>) -> Result<usize, JoinError> {
///     permit.spawn_cpu(move || body.len() / 2).await
/// }
/// let permit = cpu.handle().try_reserve().unwrap();
/// assert_eq!(compress(permit, vec![0; 10]).await.unwrap(), 5);
/// # }
/// ```
#[must_use = "it is one of the queue's permits, and others wait for it: spawn by it"]
pub struct Permit {
    level: Level,
    permit: Option<OwnedSemaphorePermit>,
    deadline: Option<Instant>,
}

impl Permit {
    pub(super) fn acquire(level: &Level, deadline: Option<Instant>) -> Result<Self, CloseReason> {
        let permit = super::acquire(level)?;
        Ok(Self::new(level, permit, deadline))
    }

    pub(crate) fn try_new(level: &Level, deadline: Option<Instant>) -> Result<Self, JoinError> {
        Self::acquire(level, deadline).map_err(|cause| {
            level.count(Event::Rejected);
            cause.into()
        })
    }

    pub(super) fn new(
        level: &Level,
        permit: Option<OwnedSemaphorePermit>,
        deadline: Option<Instant>,
    ) -> Self {
        Self {
            level: level.clone(),
            permit,
            deadline,
        }
    }

    /// Sets a time after which the job is of no use.
    ///
    /// As [`Handle::with_deadline`](crate::Handle::with_deadline), for the job of this permit.
    /// Of two deadlines the earlier one holds.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use std::time::{Duration, Instant};
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let received = Instant::now(); // ... and the client waits for a second
    /// let permit = cpu.handle().reserve().await.unwrap();
    /// let task = permit.with_deadline(received + Duration::from_secs(1)).spawn_cpu(|| 42);
    /// assert_eq!(task.await.unwrap(), 42);
    /// # }
    /// ```
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        let earlier = self.deadline.map_or(deadline, |one| one.min(deadline));
        self.deadline = Some(earlier);
        self
    }

    /// Submits a closure with this permit.
    ///
    /// Otherwise the same as [`Handle::spawn_cpu`](crate::Handle::spawn_cpu).
    ///
    /// # Errors
    ///
    /// None here. The task returns what went wrong, also that the lane was shut down
    /// before this call: [`JoinError`].
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let permit = cpu.handle().reserve().await.unwrap();
    /// assert_eq!(permit.spawn_cpu(|| 6 * 7).await.unwrap(), 42);
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn_cpu<F, T>(self, f: F) -> Task<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.submit(closure(f))
    }

    /// Submits a closure with this permit.
    ///
    /// Otherwise the same as [`Handle::spawn_cpu_with`](crate::Handle::spawn_cpu_with).
    ///
    /// # Errors
    ///
    /// The same as for [`spawn_cpu`](Self::spawn_cpu).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let permit = cpu.handle().reserve().await.unwrap();
    /// permit.spawn_cpu_with(|job| job.checkpoint()).await.unwrap();
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn_cpu_with<F, T>(self, f: F) -> Task<T>
    where
        F: FnOnce(&JobContext) -> Result<T, Cancelled> + Send + 'static,
        T: Send + 'static,
    {
        self.submit(closure_with(f))
    }

    /// Submits a future with this permit.
    ///
    /// Otherwise the same as [`Handle::spawn`](crate::Handle::spawn).
    ///
    /// # Errors
    ///
    /// The same as for [`spawn_cpu`](Self::spawn_cpu).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let permit = cpu.handle().reserve().await.unwrap();
    /// assert_eq!(permit.spawn(async { 6 * 7 }).await.unwrap(), 42);
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.submit(FutureWork::new(future))
    }

    #[track_caller]
    fn submit<W: Work>(self, work: W) -> Task<W::Output> {
        let level = &self.level;
        match super::refused_now(level, self.deadline) {
            None => super::take_on(level, self.permit, self.deadline, work),
            Some(cause) => super::refuse(level, cause, work),
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("priority", &self.level.priority())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
