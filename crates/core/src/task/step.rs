//! One step of a job: what a worker that has popped the job does, until the job is
//! suspended or has ended.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::state::ToIdle;
use super::work::{Slot, Work};
use super::{Cancel, Event, JOB_DESTRUCTOR, Job, Runnable, Schedule, Worker, has_passed};
use crate::error::JoinError;
use crate::panics::{catch, drop_quietly, or_drop, run_hook};
use crate::sync::{MutexGuard, Ordering::Relaxed};

impl<W: Work, S: Schedule> Job<W, S> {
    /// Runs a step on a worker that popped the job from the lane's queue. `None` if the
    /// job has ended, other than in `suspend`.
    pub(super) fn step(self: &Arc<Self>, worker: &mut Worker<'_>) -> Option<ToIdle> {
        if worker.is_closed() || has_passed(self.extras.deadline()) {
            self.close_instead();
        }
        if !self.state.to_running() {
            self.discard();
            return None;
        }
        worker.count(Event::Begun);
        // Held until the awaiter has been woken, or the job waits.
        let _clock = self.extras.take_clock();
        let own = W::waker(self);
        let mut slot = self.slot();
        let waker = own.as_deref().unwrap_or(Waker::noop());
        // A cancelled job has no step, and ends as one that is suspended.
        let is_cancelled = self.state.is_cancel_requested();
        if !is_cancelled && self.compute(&mut slot, waker, worker).is_ready() {
            self.leave_registry(W::link(&self.link));
            self.finish(slot, worker);
            return None;
        }
        drop(slot);
        self.enter_registry();
        Some(self.suspend(worker))
    }

    /// Runs the step on the work in `slot`. If it is ready, the output is there.
    fn compute(
        self: &Arc<Self>,
        slot: &mut Slot<W::Output, W>,
        waker: &Waker,
        worker: &mut Worker<'_>,
    ) -> Poll<()> {
        let mut cx = Context::from_waker(waker);
        let link = W::link(&self.link);
        let watched = worker.begin(self, link, W::IS_CLOSURE);
        let step = |slot: &mut Slot<_, _>| W::step(self, slot, &mut cx);
        let step = || or_drop(JOB_DESTRUCTOR, slot, Slot::take_work, step);
        let step = catch(|| self.extras.in_scope(step));
        let ended = worker.end(watched, self);
        worker.yielded = ended.yielded;
        if ended.cancelled {
            self.state.request_cancel();
        }
        match step {
            Ok(Poll::Pending) => {
                if let Some(link) = link.filter(|_| ended.in_cpu_context) {
                    link.in_cpu_context.store(true, Relaxed);
                }
                return Poll::Pending;
            }
            Ok(Poll::Ready(())) => {}
            Err(payload) => {
                let error = Slot::Output(Err(JoinError::of_unwinding(payload)));
                // The subscriber may have panicked: then the work or the output is still there.
                drop_quietly(JOB_DESTRUCTOR, mem::replace(slot, error));
            }
        }
        // The end of this step is no end of the job: it is a future that has Tokio tasks on
        // this lane, and the lane is closed. It drops them after that, so the output may be no
        // more than the error of a part that was dropped. The job is closed like one that has
        // to wait.
        if !W::IS_CLOSURE && ended.in_cpu_context && worker.is_closed() {
            drop_quietly("the destructor of a late output", slot.take_output());
            self.extras.release_permit();
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Publishes the output, which is in `slot`, the job's own.
    fn finish(&self, slot: MutexGuard<'_, Slot<W::Output, W>>, worker: &Worker<'_>) {
        let closed = match &*slot {
            Slot::Output(Err(error)) => Some(error.close_reason()),
            _ => None,
        };
        drop(slot);
        self.count_end(closed, worker);
        if closed == Some(None) {
            // If no awaiter takes the panic, it is logged, inside the job's span. The
            // span is user code and may panic: the call below then does the rest.
            run_hook("a job's span", || {
                self.in_span(&mut || self.publish());
            });
        }
        if !self.has_ended() {
            self.publish();
        }
    }

    /// After a step without an output. A job that was cancelled or closed meanwhile ends here.
    fn suspend(&self, worker: &Worker<'_>) -> ToIdle {
        let paused = self.pause(worker);
        match paused {
            ToIdle::Suspended | ToIdle::Requeue => {}
            ToIdle::Cancelled => {
                self.discard();
                self.end_cancelled(worker);
            }
            ToIdle::Discard(_) => self.discard(),
        }
        paused
    }
}
