//! `spawn_io`: a future as a task of the I/O runtime, with a [`Task`] as its awaiting
//! side.
//!
//! The Tokio task is the runner in the sense of [`State`](crate::task::state): it
//! finishes the completion, or its drop closes the completion. It is dropped unfinished
//! in two cases only: a canceller has closed the completion and then aborted the task,
//! or the runtime has shut down.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::task::AbortHandle;

use crate::error::{CloseReason, JoinError};
use crate::io_lane::enter_for_drop;
use crate::lane::inherit;
use crate::lane::thread::Inherited;
use crate::lane::{Level, thread};
use crate::panics;
use crate::task::completion::Completion;
use crate::task::{Cancel, Join, Task};
use crate::trace::{self, Origin};
use stallwatch::Name;

/// Work that goes on in the same Tokio task after the output was handed over. Dropping
/// the [`Task`] does not cancel it any more.
pub(crate) type Tail = Option<Pin<Box<dyn Future<Output = ()> + Send>>>;

pin_project! {
    /// A future without a tail.
    pub(crate) struct Tailless<F> {
        #[pin]
        pub(crate) future: F,
    }
}

impl<F: Future> Future for Tailless<F> {
    type Output = (F::Output, Tail);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().future.poll(cx).map(|output| (output, None))
    }
}

/// Runs `head` on the I/O lane, unless the CPU lane was shut down or the I/O runtime is
/// gone.
#[track_caller]
pub(crate) fn spawn_io<F, T>(level: &Level, head: F) -> Task<T>
where
    F: Future<Output = (T, Tail)> + Send + 'static,
    T: Send + 'static,
{
    match level.lane().close_reason() {
        Some(cause) => {
            drop(head);
            Task::refused(cause)
        }
        None => spawn_io_unless_gone(level, head),
    }
}

/// Runs `head` on the I/O lane, also if the CPU lane was shut down.
#[track_caller]
pub(crate) fn spawn_io_unless_gone<F, T>(level: &Level, head: F) -> Task<T>
where
    F: Future<Output = (T, Tail)> + Send + 'static,
    T: Send + 'static,
{
    let job = Arc::new(IoJob {
        completion: Completion::running(),
        origin: Origin::capture(),
        abort: OnceLock::new(),
    });
    let runner = Runner {
        head: Some(Box::pin(head)),
        tail: None,
        job: job.clone(),
        level: level.clone(),
        site: level.site_or_caller(),
        inherited: inherit::inherited(level.lane()).for_io(),
    };
    // A runtime that is gone drops the runner at once, which closes the completion.
    let spawned = level.lane().io.handle().spawn(runner);
    // It cannot have been cancelled yet: its `Task` is made below.
    job.abort.get_or_init(|| spawned.abort_handle());
    Task::new(job)
}

struct IoJob<T> {
    completion: Completion<T>,
    origin: Option<Origin>,
    abort: OnceLock<AbortHandle>,
}

impl<T: Send> Cancel for IoJob<T> {
    fn cancel(self: Arc<Self>) {
        if let Some(interest) = self.completion.state.close_running(CloseReason::Cancelled) {
            if let Some(abort) = self.abort.get() {
                abort.abort();
            }
            self.completion.closed(CloseReason::Cancelled, interest);
        }
    }

    fn has_ended(&self) -> bool {
        self.completion.state.has_ended()
    }
}

impl<T: Send + 'static> Join<T> for IoJob<T> {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        self.completion.poll(cx)
    }

    fn drop_join_handle(&self) {
        self.completion.drop_join_handle();
    }

    fn as_cancel(self: Arc<Self>) -> Arc<dyn Cancel> {
        self
    }
}

/// Polls and drops the future in the context of its submitter: inside the span, and
/// with the submitter's handle as the current one. Catches its panics.
struct Runner<F, T> {
    head: Option<Pin<Box<F>>>,
    tail: Tail,
    job: Arc<IoJob<T>>,
    level: Level,
    /// Where it was spawned, for the watch.
    site: Name,
    /// What covers the submissions of the future; its submitter has passed it on.
    inherited: Inherited,
}

impl<F, T> Runner<F, T>
where
    F: Future<Output = (T, Tail)>,
{
    fn poll_both(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let poll =
            |head: &mut Option<Pin<Box<F>>>| head.as_mut().map(|head| head.as_mut().poll(cx));
        let poll = panics::or_drop(DESTRUCTOR, &mut self.head, Option::take, poll);
        if let Some(poll) = poll {
            let (output, tail) = ready!(poll);
            // A panic of the destructor must not lose the output.
            panics::drop_quietly(DESTRUCTOR, self.head.take());
            self.job.completion.try_finish(Ok(output));
            self.tail = tail;
        }
        match &mut self.tail {
            Some(tail) => tail.as_mut().poll(cx),
            None => Poll::Ready(()),
        }
    }
}

impl<F, T> Runner<F, T> {
    fn inside<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let (level, job) = (self.level.clone(), self.job.clone());
        let _inherited = inherit::enter(self.inherited.clone());
        thread::with_entered(&level, || trace::in_scope(job.origin.as_ref(), || f(self)))
    }
}

const DESTRUCTOR: &str = "the destructor of a future on the I/O lane";

impl<F, T> Future for Runner<F, T>
where
    F: Future<Output = (T, Tail)>,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let _entered = stallwatch::enter(self.site);
        match panics::catch(|| self.inside(|this| panics::catch(|| this.poll_both(cx)))) {
            Ok(Ok(polled)) => polled,
            Ok(Err(payload)) | Err(payload) => {
                // It is still there if the subscriber panicked. Drop it before its awaiter
                // gets the error, as with a job.
                panics::drop_quietly(DESTRUCTOR, self.head.take());
                if self.job.completion.state.has_ended() {
                    // The panic came in the tail or after a cancel, so no awaiter gets
                    // it.
                    panics::report("a future on the I/O lane", &payload.text());
                } else {
                    let error = JoinError::of_unwinding(payload);
                    self.job.completion.try_finish(Err(error));
                }
                Poll::Ready(())
            }
        }
    }
}

impl<F, T> Drop for Runner<F, T> {
    fn drop(&mut self) {
        // A runtime that is gone drops the runner on the submitter's thread.
        let level = self.level.clone();
        let _io = enter_for_drop(level.lane().io.handle());
        panics::run_hook(DESTRUCTOR, || {
            self.inside(|this| {
                panics::drop_quietly(DESTRUCTOR, this.head.take());
                panics::drop_quietly(DESTRUCTOR, this.tail.take());
            });
        });
        let completion = &self.job.completion;
        if let Some(interest) = completion.state.close_running(CloseReason::IoRuntimeGone) {
            completion.closed(CloseReason::IoRuntimeGone, interest);
        }
    }
}
