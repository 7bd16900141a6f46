//! One step of a job: what a worker that has popped the job does, until the job is
//! suspended or has ended.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::completion::Slot;
use super::state::{ToIdle, ToRunning};
use super::work::{AsLink, Work};
use super::{Cancel, Event, JOB_DESTRUCTOR, Job, RegistryKey, Run, Schedule, Worker, slice};
use crate::error::{CloseReason, JoinError};
use crate::panics::{catch, drop_quietly, or_drop, run_hook};
use crate::sync::{MutexGuard, Ordering::Relaxed};

impl<W: Work, S: Schedule> Job<W, S> {
    /// Drops the work inside the span in which it ran, as a user expects.
    pub(super) fn drop_work(&self, work: W) {
        run_hook("the destructor of a job's captures", || {
            self.extras.in_scope(|| drop(work));
        });
    }

    /// Whether the step may run. If not, the job was closed, and the caller drops its
    /// work.
    fn begin(&self, worker: &Worker<'_>) -> bool {
        if worker.is_closed() {
            self.close(CloseReason::ShutDown);
        } else if self.extras.is_past_deadline() {
            self.close(CloseReason::Expired);
        }
        let runs = self.state().to_running() == ToRunning::Run;
        if runs {
            worker.count(Event::Begun);
        }
        runs
    }

    /// Runs the step on the work in `slot`.
    fn compute(
        self: &Arc<Self>,
        slot: &mut Slot<W::Output, W>,
        waker: &Waker,
        worker: &mut Worker<'_>,
    ) -> Poll<Result<W::Output, JoinError>> {
        let queued_at = &self.completion.queued_at;
        let sample = worker.sites.begin(self.scheduler.site(), queued_at);
        let begun = worker.timings.map(|timings| timings.begin(queued_at));
        let mut cx = Context::from_waker(waker);
        let outer = slice::begin_step(self.was_in_cpu_context());
        let step = {
            let deadline = self.extras.deadline();
            let _entered = self.scheduler.enter_step(W::IS_CLOSURE, deadline);
            let step = |slot: &mut Slot<_, _>| W::step(self, slot, &mut cx);
            let step = || or_drop(JOB_DESTRUCTOR, slot, Slot::take_work, step);
            catch(|| self.extras.in_scope(step))
        };
        let ended = slice::end_step(outer);
        worker.yielded = ended.yielded;
        worker.leaves();
        if let Some(sample) = sample {
            sample.end();
        }
        if let Some((timings, begun)) = worker.timings.zip(begun) {
            timings.end(begun);
        }
        let output = match step {
            Ok(Poll::Pending) => {
                if ended.in_cpu_context {
                    self.note_cpu_context();
                }
                return Poll::Pending;
            }
            Ok(Poll::Ready(ended)) => ended,
            Err(payload) => Err(JoinError::of_unwinding(payload)),
        };
        // The end of this step is no end of the job: it is a future that has Tokio tasks on
        // this lane, and the lane is closed. It drops them after that, so the output may be no
        // more than the error of a part that was dropped. The job is closed like one that has
        // to wait.
        if !W::IS_CLOSURE && ended.in_cpu_context && worker.is_closed() {
            drop_quietly("the destructor of a late output", output);
            return Poll::Pending;
        }
        // Drop the captures before publishing the output, as Tokio does, so that an
        // awaiter never observes them alive.
        if let Some(work) = slot.take_work() {
            self.drop_work(work);
        }
        Poll::Ready(output)
    }

    // Relaxed, as for the registry key: the job's state orders one runner after the other.
    fn was_in_cpu_context(&self) -> bool {
        let link = self.link.as_link();
        link.is_some_and(|link| link.in_cpu_context.load(Relaxed))
    }

    fn note_cpu_context(&self) {
        if let Some(link) = self.link.as_link() {
            link.in_cpu_context.store(true, Relaxed);
        }
    }

    /// Puts the output into `slot`, which is the job's own slot, and publishes it.
    pub(super) fn finish(
        &self,
        mut slot: MutexGuard<'_, Slot<W::Output, W>>,
        output: Result<W::Output, JoinError>,
        worker: &mut Worker<'_>,
    ) {
        let closed = output.as_ref().err().map(JoinError::close_reason);
        let panicked = closed == Some(None);
        *slot = Slot::Output(output);
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
        if panicked {
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

    fn publish(&self) {
        if self.completion.finish() {
            self.scheduler.count_lost();
        }
    }

    /// Call after a step without an output. It notifies the awaiter on
    /// [`ToIdle::Discard`].
    pub(super) fn suspend(&self, worker: &Worker<'_>) -> ToIdle {
        worker.count(Event::Suspended);
        let paused = self.state().to_idle(&|| worker.is_closed());
        match &paused {
            ToIdle::Suspended => {}
            ToIdle::Requeue => worker.count(Event::Woken),
            ToIdle::Discard {
                cause,
                interest,
                was_queued,
            } => self.notify_closed(*cause, *interest, !was_queued),
        }
        paused
    }

    /// Drops the work of a closed job, if it is still there, and releases what the job
    /// held.
    pub(super) fn discard_work(&self, work: Option<W>) {
        if let Some(work) = work {
            self.drop_work(work);
            // Only now: the limit bounds what waiting jobs hold in memory.
            self.extras.release_permit();
        }
        // Also if there is no work: a wake-up may hold the clock of a job that is closed.
        let _clock = self.extras.take_clock();
    }

    /// Runs a step on a worker that popped the job from the lane's queue. `None` if the
    /// job has ended.
    pub(super) fn step(self: &Arc<Self>, worker: &mut Worker<'_>) -> Option<ToIdle> {
        if !self.begin(worker) {
            self.discard();
            return None;
        }
        // Held until the awaiter has been woken, or the job waits.
        let _clock = self.extras.take_clock();
        let own = W::waker(self);
        let mut slot = self.completion.slot();
        let waker = own.as_deref().unwrap_or(Waker::noop());
        match self.compute(&mut slot, waker, worker) {
            Poll::Ready(output) => {
                self.leave_registry();
                self.finish(slot, output, worker);
                None
            }
            Poll::Pending => {
                drop(slot);
                self.enter_registry();
                let paused = self.suspend(worker);
                if let ToIdle::Discard { .. } = paused {
                    self.discard();
                }
                if let ToIdle::Requeue = paused {
                    self.extras.hold_clock();
                }
                Some(paused)
            }
        }
    }

    pub(super) fn enter_registry(self: &Arc<Self>) {
        let Some(link) = self.link.as_link() else {
            return;
        };
        // Relaxed: only the thread that runs or discards the job touches the key, and
        // the job's state orders one such thread after the other.
        if link.registry_key.load(Relaxed) == 0 {
            let key = self.scheduler.register(self.clone());
            link.registry_key.store(key.get(), Relaxed);
        }
    }

    pub(super) fn leave_registry(&self) {
        let Some(link) = self.link.as_link() else {
            return;
        };
        if link.registry_key.load(Relaxed) != 0 {
            // Two threads may discard a closed job: the swap lets one of them remove
            // the key.
            if let Some(key) = RegistryKey::new(link.registry_key.swap(0, Relaxed)) {
                self.scheduler.unregister(key);
            }
        }
    }
}
