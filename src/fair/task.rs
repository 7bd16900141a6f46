//! [`FairTask`], and the [`Slot`] where it finds the lane's task, once the job has its turn.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use twolane_core::{JoinError, Task};

use super::error::FairError;

/// A job of a [`Key`](super::Key): a future of its output.
///
/// The job is submitted already. Dropping this cancels it, as a [`Task`](crate::Task): a job that is
/// queued does not run. It keeps its place in the queue of its key until its turn, when the lane
/// drops what it holds. To let a job run without waiting for it, give this to `tokio::spawn`.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use twolane::Fair;
/// use twolane::fair::FairTask;
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let task: FairTask<i32> = Fair::new(cpu.handle()).key("acme").spawn_cpu(|| 6 * 7);
/// assert_eq!(task.await.unwrap(), 42);
/// # }
/// ```
pub type FairTask<T> = Pin<Box<dyn Future<Output = Result<T, FairError>> + Send>>;

/// Whoever drops it last cancels the job: the submitter, or a ticket whose submitter is gone.
pub(super) enum Slot<T> {
    /// The waker of the submitter.
    Queued(Option<Waker>),
    Started(Task<T>),
    /// Before the submitter looked, or without a task: the job's destructor or the subscriber panicked.
    Ended(Option<Result<T, JoinError>>),
}

impl<T> Slot<T> {
    /// Looks at the task in the submitter's place, who is so woken by the end of the job alone.
    /// Returns whom to wake, if it has ended.
    pub(super) fn start(&mut self, task: Result<Task<T>, JoinError>) -> Option<Waker> {
        let refused = |error| Self::Ended(Some(Err(error)));
        let started = task.map_or_else(refused, Self::Started);
        if let Self::Queued(Some(waker)) = std::mem::replace(self, started) {
            if let Poll::Ready(output) = self.poll(&mut Context::from_waker(&waker)) {
                *self = Self::Ended(Some(output));
                return Some(waker);
            }
        }
        None
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        match self {
            Self::Queued(waker) => *waker = Some(cx.waker().clone()),
            Self::Started(task) => return Pin::new(task).poll(cx),
            Self::Ended(output) => return Poll::Ready(output.take().expect("polled once")),
        }
        Poll::Pending
    }
}
