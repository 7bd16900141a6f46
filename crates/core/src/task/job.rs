//! [`Job`]: where the work of a job and its output are, and what each holder of the job does with
//! them. All else of a job is in its [`Head`].
//!
//! The mutex around the slot is a safe stand-in for an `UnsafeCell`. The [`State`](super::state::State)
//! gives the slot to one thread at a time, so the lock is never contended, and no
//! thread has to wait for a preempted thread that holds it. That matters when the
//! lane's threads have a higher nice value than the awaiter's thread.

use std::ops::Deref;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_task::ArcWake;
use stallwatch::Name;

use super::head::Head;
use super::state::{Progress, ToIdle};
use super::work::{Extras, FutureWork, Slot, Work};
use super::{Cancel, JOB_DESTRUCTOR, Join, Runnable, Schedule, StepEnd, Worker};
use crate::error::{CloseReason, JoinError};
use crate::key::Key;
use crate::panics::{call_logged, drop_quietly, run_hook};
use crate::sync::{Mutex, MutexGuard, Ordering::Relaxed};
use crate::trace::warn_of_lost_jobs;

pub(crate) struct Job<W: Work, S: Schedule> {
    // First, as it is dropped first: a place is free when the captures are gone.
    slot: Mutex<Slot<W::Output, W>>,
    head: Head<S>,
    pub(super) link: W::Link,
}

impl<W: Work, S: Schedule> Deref for Job<W, S> {
    type Target = Head<S>;

    #[inline]
    fn deref(&self) -> &Head<S> {
        &self.head
    }
}

impl<W: Work, S: Schedule> Job<W, S> {
    pub(crate) fn new(scheduler: S, work: W, extras: Extras) -> Arc<Self> {
        Arc::new(Self {
            slot: Mutex::new(Slot::Work(work)),
            head: Head::new(scheduler, extras),
            link: W::Link::default(),
        })
    }

    /// Queues the job for the first time. The number of the submitting thread selects what it
    /// counts on.
    pub(crate) fn submit(self: &Arc<Self>, by_thread: usize, is_short: bool) {
        self.head.submit(self.clone(), by_thread, is_short);
    }

    /// Queues the job again if it is suspended.
    fn wake(self: &Arc<Self>) {
        if self.state.wake() {
            self.resume(self.clone(), self.has_parts());
        }
    }

    /// Whether it runs beside the Tokio tasks that it has spawned in the CPU context.
    fn has_parts(&self) -> bool {
        // Relaxed, as for the registry key.
        W::link(&self.link).is_some_and(|link| link.in_cpu_context.load(Relaxed))
    }

    /// For the thread to which the state gives the slot.
    pub(super) fn slot(&self) -> MutexGuard<'_, Slot<W::Output, W>> {
        let slot = self.slot.try_lock().ok();
        slot.expect("the state gives the slot to one thread at a time")
    }

    /// The runner calls it; the output is in the slot.
    pub(super) fn publish(&self) {
        let interest = self.state.finish();
        if !interest.is_dropped() {
            self.wake_awaiter(interest);
        } else if self.drop_output() && interest.is_detached() {
            self.scheduler.count_lost();
        }
    }

    /// Returns whether it was the error of a job that was closed, and not at its own request.
    fn drop_output(&self) -> bool {
        // Drop the output after the lock is released.
        let output = self.slot().take_output();
        let Some(Err(error)) = output else {
            drop_quietly("the destructor of an unread output", output);
            return false;
        };
        error.report_unread();
        let cause = error.close_reason();
        cause.is_some_and(|cause| !cause.is_requested())
    }

    pub(super) fn enter_registry(self: &Arc<Self>) {
        // Relaxed: only the thread that runs or discards the job touches the key, and
        // the job's state orders one such thread after the other.
        if let Some(link) = W::link(&self.link) {
            if link.registry_key.load(Relaxed) == 0 {
                let key = self.scheduler.register(self.clone());
                link.registry_key.store(key.get(), Relaxed);
            }
        }
    }
}

impl<W: Work, S: Schedule> Runnable for Job<W, S> {
    fn run(self: Arc<Self>, worker: &mut Worker<'_>) -> StepEnd {
        self.get_ready(worker);
        // `step` itself catches a panic of the work. This call catches a panic of the
        // subscriber, and of destructors that run with the job's last reference. The
        // closure borrows `self`: moving the reference costs more than the rest of a
        // step's bookkeeping.
        let end = call_logged(JOB_DESTRUCTOR, || self.step(worker)).flatten();
        // It had no step.
        if worker.popped.turn.is_some() {
            self.scheduler.end_turn(&mut worker.popped);
        }
        let end = match end {
            Some(ToIdle::Suspended) => StepEnd::Suspended,
            Some(ToIdle::Requeue) if !worker.is_beside_parts && self.has_parts() => {
                self.push(self.clone(), self.head.is_short(), true);
                StepEnd::Suspended
            }
            Some(ToIdle::Requeue) => {
                let yielded = worker.yielded;
                return StepEnd::Requeue { job: self, yielded };
            }
            _ => StepEnd::Ended,
        };
        call_logged(JOB_DESTRUCTOR, || drop(self));
        end
    }

    fn is_short(&self) -> bool {
        self.head.is_short()
    }

    fn key(&self) -> Option<&Key> {
        self.head.key()
    }

    fn close(&self, cause: CloseReason) {
        self.head.close(cause);
    }

    fn discard(&self) {
        self.leave_registry(W::link(&self.link));
        if self.state.progress() == Progress::Finished {
            // The slot belongs to the awaiter.
            return;
        }
        // Two threads may discard the same closed job. One gets the slot; the other one finds
        // nothing to do.
        let slot = self.slot.try_lock().ok();
        if let Some(work) = slot.and_then(|mut slot| slot.take_work()) {
            // Inside the span in which it ran, as a user expects.
            let mut work = Some(work);
            run_hook("the destructor of a job's captures", || {
                self.in_span(&mut || drop(work.take()));
            });
            // It is still there if the subscriber panicked.
            drop_quietly("the destructor of a job's captures", work);
            // Only now: the limit bounds what waiting jobs hold in memory.
            self.extras.release_permit();
        }
        // Also if there is no work: a wake-up may hold the clock of a job that is closed.
        let _clock = self.extras.take_clock();
    }

    fn end_request(&self) -> Option<CloseReason> {
        self.head.end_request()
    }

    fn in_span(&self, f: &mut dyn FnMut()) {
        self.extras.in_scope(f);
    }
}

// Not `std::task::Wake`: such a waker owns a reference to the job. Here most wakers
// live for one step only, so they borrow the reference of the step.
impl<T: Send + 'static, S: Schedule> ArcWake for Job<FutureWork<T>, S> {
    fn wake_by_ref(job: &Arc<Self>) {
        job.wake();
    }
}

impl<W: Work, S: Schedule> Cancel for Job<W, S> {
    fn cancel(self: Arc<Self>) -> Option<Name> {
        if self.head.cancel() {
            return W::IS_CLOSURE.then(|| self.scheduler.site());
        }
        // The job's destructors must run on the lane, not on the canceller's thread.
        self.wake();
        None
    }

    fn has_ended(&self) -> bool {
        self.state.has_ended()
    }
}

impl<W: Work, S: Schedule> Join<W::Output> for Job<W, S> {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<W::Output, JoinError>> {
        match self.poll_end(cx) {
            Progress::NotYet => Poll::Pending,
            Progress::Finished => {
                let output = self.slot().take_output();
                Poll::Ready(output.expect("a finished job has left its output"))
            }
            Progress::Closed(cause) => Poll::Ready(Err(cause.into())),
        }
    }

    /// Drops the output, or makes the runner drop it later.
    fn drop_join_handle(&self, detached: bool) {
        let is_lost = match self.head.drop_join_handle(detached) {
            Progress::NotYet => false,
            Progress::Finished => self.drop_output(),
            Progress::Closed(cause) => !cause.is_requested(),
        };
        if is_lost && detached {
            warn_of_lost_jobs(1);
        }
    }

    fn is_own_worker(&self) -> bool {
        self.scheduler.is_own_worker()
    }

    fn held_clock(&self) -> Option<&tokio::runtime::Handle> {
        self.extras.held_clock()
    }

    fn as_cancel(self: Arc<Self>) -> Arc<dyn Cancel> {
        self
    }
}
