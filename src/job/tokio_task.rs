//! A job as one task of a Tokio runtime, with its work inside the task; what that is
//! good for stands in `backend/runtime.rs`.
//!
//! The task polls a future with its own waker, so that a wake-up is Tokio's own. The
//! job's state tells whether it runs or rests, for threads that close it.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::task::coop;

use super::completion::Slot;
use super::state::Paused;
use super::work::{AsLink, Work};
use super::{Job, Run};
use crate::error::Cause;
use crate::lane::LEFT_BEHIND;
use crate::panics::{call_logged, run_hook};

pub(super) struct JobTask<W: Work> {
    /// None once the task is dropped: what goes with the last reference is foreign.
    job: Option<Arc<Job<W>>>,
    /// The work, until it is used up.
    slot: Slot<Infallible, W>,
}

// The work is moved only while it does not run; a future is boxed.
impl<W: Work> Unpin for JobTask<W> {}

impl<W: Work> JobTask<W> {
    pub(super) fn new(job: Arc<Job<W>>) -> Self {
        let work = job.completion.slot().take_work();
        Self {
            job: Some(job),
            slot: work.map_or(Slot::Empty, Slot::Work),
        }
    }

    fn step(&mut self, waker: &Waker) -> Poll<()> {
        let Self { job, slot } = self;
        let job = job.as_ref().expect("only the drop takes it");
        let Some(begun) = job.begin() else {
            job.discard_work(slot.take_work());
            return Poll::Ready(());
        };
        if let Poll::Ready(output) = job.compute(slot, waker) {
            job.finish(job.completion.slot(), output);
            return Poll::Ready(());
        }
        if let Some(link) = job.link.as_link().filter(|_| begun.is_first) {
            // For a thread that closes the job while it rests.
            link.driver.register(waker);
        }
        match job.pause() {
            Paused::Discard { .. } => {
                job.discard_work(slot.take_work());
                Poll::Ready(())
            }
            Paused::Rest | Paused::Requeue => Poll::Pending,
        }
    }
}

impl<W: Work> Future for JobTask<W> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if let Some(job) = &this.job {
            job.level.pause_for_quota(&**job);
        }
        // The step catches what the work panics with. This is for the subscriber.
        let step = || {
            if W::IS_CLOSURE {
                unconstrained(cx, |cx| this.step(cx.waker()))
            } else {
                this.step(cx.waker())
            }
        };
        call_logged(LEFT_BEHIND, step).unwrap_or(Poll::Ready(()))
    }
}

/// A closure can't give way: if it blocks on one of Tokio's resources, and has used up
/// the budget that Tokio gives a task for one poll, it would never get it.
fn unconstrained<R>(cx: &mut Context<'_>, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
    let mut f = Some(f);
    let once = poll_fn(|cx| f.take().map_or(Poll::Pending, |f| Poll::Ready(f(cx))));
    match pin!(coop::unconstrained(once)).poll(cx) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("it is ready at its first poll"),
    }
}

/// The task has ended, or its runtime shuts down.
impl<W: Work> Drop for JobTask<W> {
    fn drop(&mut self) {
        run_hook(LEFT_BEHIND, || {
            if let Some(job) = self.job.take() {
                job.close(Cause::ShutDown);
                job.discard_work(self.slot.take_work());
            }
        });
    }
}
