//! One step of a job: what a worker that has popped the job does, until the job is
//! suspended or has ended.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::state::ToIdle;
use super::work::{Slot, Work};
use super::{Cancel, Event, JOB_DESTRUCTOR, Job, Runnable, Schedule, Worker, has_passed};
use crate::error::{CloseReason, JoinError};
use crate::limits::Charge;
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
            self.leave_registry();
            self.finish(slot, worker);
            return None;
        }
        drop(slot);
        self.enter_registry();
        Some(self.suspend(worker))
    }

    /// The lane is closed, or the deadline has passed.
    #[cold]
    fn close_instead(&self) {
        let cause = self.scheduler.reason_for_jobs();
        let cause = cause.unwrap_or(CloseReason::Expired);
        if let Some(closed) = self.state.close_uncancelled(cause) {
            self.notify_closed(closed);
        }
    }

    /// Runs the step on the work in `slot`. If it is ready, the output is there.
    fn compute(
        self: &Arc<Self>,
        slot: &mut Slot<W::Output, W>,
        waker: &Waker,
        worker: &mut Worker<'_>,
    ) -> Poll<()> {
        let mut cx = Context::from_waker(waker);
        let watched = worker.begin(self);
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
                if let Some(link) = W::link(&self.link).filter(|_| ended.in_cpu_context) {
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
        // Count and release the permit first: an awaiter may rely on both.
        match closed {
            None => worker.count(Event::Completed),
            Some(None) => worker.count(Event::Panicked),
            // It ends as its checkpoint said, or as a job that it awaited: as if it were closed
            // while it is suspended.
            Some(Some(cause)) => {
                worker.count(Event::Suspended);
                self.scheduler.count(Event::of_close(cause));
                self.scheduler.count(Event::ClosedSuspended);
            }
        }
        self.extras.release_permit();
        if closed == Some(None) {
            // If no awaiter takes the panic, it is logged, inside the job's span. The
            // span is user code and may panic: the call below then does the rest.
            run_hook("a job's span", || {
                self.extras.in_scope(|| self.publish());
            });
        }
        if !self.has_ended() {
            self.publish();
        }
    }

    /// After a step without an output. A job that was cancelled or closed meanwhile ends here.
    fn suspend(&self, worker: &Worker<'_>) -> ToIdle {
        worker.count(Event::Suspended);
        let reason_for_jobs = || worker.is_closed().then(|| self.scheduler.reason_for_jobs());
        // Before another thread may wake it.
        self.extras.charge().into_iter().for_each(Charge::pause);
        let paused = self.state.to_idle(&|| reason_for_jobs().flatten());
        match paused {
            ToIdle::Suspended => {}
            ToIdle::Requeue => {
                worker.count(Event::Woken);
                self.extras.hold_clock();
                // As the queue does: one that yielded goes behind the others.
                self.charge(|| !worker.yielded && self.is_short());
            }
            // An awaiter may rely on the counters, and on that the contents are gone.
            ToIdle::Cancelled => {
                self.discard();
                worker.count(Event::Cancelled);
                worker.count(Event::ClosedSuspended);
                self.wake_awaiter(self.state.end_cancelled());
            }
            ToIdle::Discard(closed) => {
                self.notify_closed(closed);
                self.discard();
            }
        }
        paused
    }
}
