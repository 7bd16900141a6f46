//! [`Permit`]: a place in the queue before there is a job for it.

use std::fmt;
use std::future::Future;
use std::time::Instant;

use crate::handle::Handle;
use crate::job::state::Cause;
use crate::job::{ClosureWork, FutureWork, Work};
use crate::lane::Place;
use crate::task::Task;

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
    pub(super) fn enter(handle: &Handle, deadline: Option<Instant>) -> Result<Self, Cause> {
        let place = super::enter(handle.level(), deadline)?;
        Ok(Self::new(handle, place, deadline))
    }

    pub(super) fn new(handle: &Handle, place: Option<Place>, deadline: Option<Instant>) -> Self {
        Self {
            handle: handle.clone(),
            place,
            deadline,
        }
    }

    /// From then on nobody wants the job: if it has not started it never will, and
    /// its task says so ([`JoinError::is_expired`](crate::JoinError::is_expired)) at the deadline, not when its
    /// turn comes. One that has started is as if it was
    /// [cancelled](Task::cancel): a suspended future is dropped, a closure sees it
    /// by [`checkpoint`](crate::checkpoint).
    ///
    /// So a closure that has started keeps its awaiter until it returns. To answer at
    /// the deadline come what may, put a `timeout` around the task: it drops that,
    /// which the closure sees as well.
    ///
    /// The clock is the lane's own, real time in milliseconds, which needs no timer
    /// of a runtime. Of two deadlines the earlier holds.
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
    /// meanwhile too: [`JoinError`](crate::JoinError).
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
        match super::refusal(level, self.deadline) {
            None => super::take_on(level, self.place, self.deadline, work),
            Some(cause) => super::refuse(level, cause, work),
        }
    }
}

pub(super) fn earlier(one: Option<Instant>, other: Instant) -> Instant {
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
