//! A job as one task of a Tokio runtime; `pool/tokio.rs` explains the reasons.
//!
//! The work of a future moves into the Tokio task, so that a step takes no lock. It is
//! polled with the Tokio task's own waker, so that a wake-up is Tokio's own. The job's
//! state still says whether the future runs or is suspended, for threads that close the
//! job. A closure stays in the job, so that its Tokio task is as small as possible.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::task::coop;

use super::completion::Slot;
use super::state::ToIdle;
use super::work::{AsLink, Work};
use super::{JOB_DESTRUCTOR, Job, Run, Schedule};
use crate::error::CloseReason;
use crate::panics::{call_logged, run_hook};

/// `None` once the job has run. Dropping the last reference runs user code, so it must
/// happen where panics are caught.
pub(super) struct ClosureTask(pub(super) Option<Arc<dyn Run>>);

impl Future for ClosureTask {
    type Output = ();

    /// A closure cannot yield to Tokio. If it has used up the budget of this poll and
    /// then blocks on a Tokio resource, it would never get it: hence `unconstrained`.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let run = poll_fn(|_| Poll::Ready(self.0.take().map(Run::run)));
        pin!(coop::unconstrained(run)).poll(cx).map(drop)
    }
}

impl Drop for ClosureTask {
    fn drop(&mut self) {
        run_hook(JOB_DESTRUCTOR, || {
            if let Some(job) = self.0.take() {
                job.close(CloseReason::ShutDown);
                job.discard();
            }
        });
    }
}

pub(super) struct FutureTask<W: Work, S: Schedule> {
    /// `None` once it is over, as in [`ClosureTask`].
    job: Option<Arc<Job<W, S>>>,
    /// The work, until it is used up.
    slot: Slot<Infallible, W>,
}

// The future inside is boxed.
impl<W: Work, S: Schedule> Unpin for FutureTask<W, S> {}

impl<W: Work, S: Schedule> FutureTask<W, S> {
    pub(super) fn new(job: Arc<Job<W, S>>) -> Self {
        // The job may have been closed meanwhile, and the thread that discards it has
        // the slot.
        let slot = job.completion.try_slot();
        let work = slot.and_then(|mut slot| slot.take_work());
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
            // For a canceller that closes the job while it is suspended.
            link.driver.register(waker);
        }
        match job.suspend() {
            ToIdle::Discard { .. } => {
                job.discard_work(slot.take_work());
                Poll::Ready(())
            }
            ToIdle::Suspended | ToIdle::Requeue => Poll::Pending,
        }
    }
}

impl<W: Work, S: Schedule> Future for FutureTask<W, S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if let Some(job) = &this.job {
            job.throttle();
        }
        // `step` itself catches a panic of the work. This call catches one of the
        // subscriber.
        call_logged(JOB_DESTRUCTOR, || this.step(cx.waker())).unwrap_or(Poll::Ready(()))
    }
}

/// The Tokio task has ended, or its runtime shuts down.
impl<W: Work, S: Schedule> Drop for FutureTask<W, S> {
    fn drop(&mut self) {
        run_hook(JOB_DESTRUCTOR, || {
            if let Some(job) = self.job.take() {
                job.close(CloseReason::ShutDown);
                job.discard_work(self.slot.take_work());
            }
        });
    }
}
