//! [`InCpuContext`]: a future or stream inside the context of the CPU lane's own Tokio
//! runtime, the companion of its priority (`lane/companion.rs`).

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use pin_project_lite::pin_project;

use crate::error::JoinError;
use crate::lane::{Submitter, thread};
use crate::task::worker;

/// Lets a future that computes in tasks of its own keep them on the CPU lane.
///
/// A job is inside the I/O lane's context, so a bare `tokio::spawn` in it makes a task of
/// the I/O lane. That is right for clients. It is wrong for an engine, such as
/// DataFusion, that calls `tokio::spawn` on parts that compute. Inside this wrapper each
/// poll is in the context of the CPU lane's own Tokio runtime, so a `tokio::spawn` there
/// makes a task of the CPU lane, beside the lane's jobs. The wrapper is a future if its
/// content is one, and a stream if its content is one.
///
/// That runtime has threads of its own, as many as the priority has workers. They start at the first
/// poll, which waits for them: see [`Handle::tokio_handle`](crate::Handle::tokio_handle). The job goes there
/// at that poll, and stays there, beside its tasks: rayon's `par_iter` in it is on rayon's global pool. (A
/// closure that blocks on the wrapper stays where it is.)
///
/// That runtime has timers and no I/O driver. A socket that is opened in it panics with
/// Tokio's message, *"A Tokio 1.x context was found, but IO is disabled"*. Give what does
/// I/O to [`spawn_io`](crate::spawn_io), to an adapter, or to an `IoOwned`.
/// The `Drop` of a client in the middle of a poll calls `tokio::spawn` there, too, unless
/// the client is in an `IoOwned`.
///
/// Only the polls are in that context. What is spawned when `inner` is *made* is not (an
/// engine's `execute` may spawn before it returns a stream: call it in an `async` block
/// inside the wrapper), and `inner` is dropped in the I/O lane's context.
///
/// Tasks that are spawned so are Tokio's own: limits, deadlines and cancellation do not see
/// them, and of the counters only [`Metrics::tokio_tasks`](crate::metrics::Metrics::tokio_tasks).
/// A shutdown drops them, and the task of a job that was polled here fails with
/// [`JoinErrorKind::Shutdown`](crate::JoinErrorKind::Shutdown) then, whatever the job makes of it.
///
/// # Panics
///
/// Polling the result panics elsewhere than in a job or in a task spawned so, since there is no lane. If
/// the operating system gives that runtime no threads, the job ends with
/// [`JoinErrorKind::NoThreads`](crate::JoinErrorKind::NoThreads).
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use twolane::{CpuRuntime, in_cpu_context};
/// let cpu = CpuRuntime::new().unwrap();
/// let query = async {
///     let part = tokio::spawn(async { (1..=20_u64).product::<u64>() }); // on the CPU lane
///     part.await.unwrap()
/// };
/// assert_eq!(cpu.spawn(in_cpu_context(query)).await.unwrap(), 2_432_902_008_176_640_000);
/// # }
/// ```
pub fn in_cpu_context<F>(inner: F) -> InCpuContext<F> {
    InCpuContext { inner }
}

pin_project! {
    /// A future or stream inside the context of the CPU lane's own Tokio runtime.
    ///
    /// Returned by [`in_cpu_context`].
    #[must_use = "futures and streams do nothing unless polled"]
    pub struct InCpuContext<F> {
        #[pin]
        inner: F,
    }
}

/// Runs `poll` inside the context, on a thread of it: a job on another one goes there first.
fn enter<R>(cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> Poll<R>) -> Poll<R> {
    let step = worker::set_in_cpu_context();
    let must_move = step.is_some_and(|(_, must_move)| must_move);
    let priority = |own: &Submitter| step.map_or(own.priority, |(priority, _)| priority);
    // By reference: a clone would write the count that all threads share.
    let polled = thread::ask_own(
        |own| match own.levels.at(priority(own)).started_companion() {
            Ok(_) if must_move => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(companion) => {
                let _cpu = companion.handle.enter();
                poll(cx)
            }
            // The job ends with it.
            Err(refused) => JoinError::from(refused).resume_unwind(),
        },
    );
    polled.expect(
        "`in_cpu_context` was polled outside a job: no lane is here, and no Tokio runtime of one. \
         Give the future to `spawn`",
    )
}

impl<F: Future> Future for InCpuContext<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let inner = self.project().inner;
        enter(cx, |cx| inner.poll(cx))
    }
}

impl<S: Stream> Stream for InCpuContext<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let inner = self.project().inner;
        enter(cx, |cx| inner.poll_next(cx))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

debug_by_name!(InCpuContext<F>);
