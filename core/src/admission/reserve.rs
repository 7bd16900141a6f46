//! [`Reserve`]: the wait for a permit of the queue.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::sync::{AcquireError, OwnedSemaphorePermit};
use tokio::task::coop;

use super::permit::Permit;
use crate::block_on::block_on;
use crate::error::{CloseReason, JoinError};
use crate::lane::Level;
use crate::task::{Event, Schedule};

type Acquire = dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send + Sync;

/// A future that waits for a permit of the queue.
///
/// Returned by [`Handle::reserve`](crate::Handle::reserve). It resolves to a [`Permit`].
///
/// # Errors
///
/// [`JoinErrorKind::Shutdown`](crate::JoinErrorKind::Shutdown) if the lane is shut down, also
/// during the wait;
/// [`JoinErrorKind::IoRuntimeGone`](crate::JoinErrorKind::IoRuntimeGone) if its I/O runtime is
/// gone.
///
/// # Panics
///
/// Polling it again after it is ready panics.
///
/// # Cancel safety
///
/// Dropping it gives up its position among the waiters. No permit is lost. A wait that
/// was dropped counts in [`Metrics::rejected`](crate::metrics::Metrics).
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use std::time::Duration;
/// use twolane::{CpuRuntime, Priority};
/// use twolane::future::Reserve;
/// let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, 1).build().unwrap();
/// let permit = cpu.handle().reserve().await.unwrap();
/// // It is `Unpin`: no `pin!` is needed to wait for a while, and go on later.
/// let mut second: Reserve = cpu.handle().reserve();
/// assert!(tokio::time::timeout(Duration::from_millis(1), &mut second).await.is_err());
/// drop(permit);
/// second.await.unwrap().spawn_cpu(|| 42).await.unwrap();
/// # }
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct Reserve {
    level: Level,
    deadline: Option<Instant>,
    step: Step,
}

enum Step {
    NotPolled,
    /// Boxed, so that `Reserve` is `Unpin`. Most of them never wait.
    Waits(Pin<Box<Acquire>>),
    Done,
}

impl Reserve {
    pub(crate) fn new(level: Level, deadline: Option<Instant>) -> Self {
        Self {
            level,
            deadline,
            step: Step::NotPolled,
        }
    }

    /// Waits for the permit on a plain thread, which sleeps meanwhile.
    ///
    /// [`Task::wait`](crate::Task::wait) lists the threads that may call it. Inside a
    /// job of the same lane it returns at once: what is submitted there needs no permit.
    ///
    /// # Errors
    ///
    /// The same as when it is awaited.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.handle().reserve().wait().unwrap().spawn_cpu(|| 1).wait().unwrap(), 1);
    /// ```
    pub fn wait(self) -> Result<Permit, JoinError> {
        block_on(self)
    }

    fn poll_acquire(&mut self, cx: &mut Context<'_>) -> Poll<Result<Permit, CloseReason>> {
        loop {
            match &mut self.step {
                Step::NotPolled => {
                    let acquired = Permit::acquire(&self.level, self.deadline);
                    match (acquired, self.level.limit()) {
                        (Err(CloseReason::QueueFull), Some(limit)) => {
                            let acquire = limit.clone().acquire_owned();
                            self.step = Step::Waits(Box::pin(acquire));
                        }
                        (entered, _) => return Poll::Ready(entered),
                    }
                }
                Step::Waits(acquire) => {
                    let permit = ready!(acquire.as_mut().poll(cx));
                    let permit = permit.map_err(|_closed| self.level.lane().reason_of_close());
                    return Poll::Ready(
                        permit.map(|it| Permit::new(&self.level, Some(it), self.deadline)),
                    );
                }
                Step::Done => panic!("a `Reserve` was polled after it was ready"),
            }
        }
    }
}

impl Future for Reserve {
    type Output = Result<Permit, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let budget = ready!(coop::poll_proceed(cx));
        let entered = ready!(self.poll_acquire(cx));
        budget.made_progress();
        self.step = Step::Done;
        Poll::Ready(entered.map_err(|cause| {
            self.level.count(Event::Rejected);
            cause.into()
        }))
    }
}

/// A wait that is dropped counts as a rejection, too.
impl Drop for Reserve {
    fn drop(&mut self) {
        if matches!(self.step, Step::Waits(_)) {
            self.level.count(Event::Rejected);
        }
    }
}

impl fmt::Debug for Reserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserve")
            .field("priority", &self.level.priority())
            .field("waits", &matches!(self.step, Step::Waits(_)))
            .finish_non_exhaustive()
    }
}
