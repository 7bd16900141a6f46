//! [`Job`]: where the work of a job, its output and the awaiter's waker are, and what each holder
//! of the job does with them.
//!
//! The mutex around the slot is a safe stand-in for an `UnsafeCell`. The [`State`]
//! gives the slot to one thread at a time, so the lock is never contended, and no
//! thread has to wait for a preempted thread that holds it. That matters when the
//! lane's threads have a higher nice value than the awaiter's thread.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};

use futures_task::ArcWake;
use stallwatch::Name;

use super::state::{Closed, JoinInterest, Progress, State, ToIdle};
use super::work::{Extras, FutureWork, Slot, Work, has_passed};
use super::{
    Cancel, Event, JOB_DESTRUCTOR, Join, RegistryKey, Runnable, Schedule, StepEnd, Worker,
};
use crate::error::{CloseReason, JoinError};
use crate::key::Key;
use crate::limits::Charge;
use crate::pace::clock::now;
use crate::panics::{call_logged, drop_quietly, run_hook};
use crate::sync::{AtomicWaker, Mutex, MutexGuard, Ordering::Relaxed};
use crate::trace::warn_of_lost_jobs;

pub(crate) struct Job<W: Work, S: Schedule> {
    pub(super) scheduler: S,
    pub(super) state: State,
    /// When the job was queued, for its level's histograms; else 0. Only the thread that queues
    /// the job or runs it touches it.
    pub(super) queued_at: AtomicU64,
    awaiter: AtomicWaker,
    slot: Mutex<Slot<W::Output, W>>,
    pub(super) extras: Extras,
    pub(super) link: W::Link,
}

impl<W: Work, S: Schedule> Job<W, S> {
    pub(crate) fn new(scheduler: S, work: W, extras: Extras) -> Arc<Self> {
        Arc::new(Self {
            scheduler,
            state: State::queued(),
            queued_at: AtomicU64::new(0),
            awaiter: AtomicWaker::new(),
            slot: Mutex::new(Slot::Work(work)),
            extras,
            link: W::Link::default(),
        })
    }

    /// Queues the job for the first time. The number of the submitting thread selects what it
    /// counts on.
    pub(crate) fn submit(self: &Arc<Self>, by_thread: usize, is_short: bool) {
        let counters = self.scheduler.counters();
        counters.count_from(by_thread, Event::Submitted);
        counters.sites.submitted(self.scheduler.site(), by_thread);
        self.enqueue(is_short);
    }

    /// Queues the job again if it is suspended.
    fn wake(self: &Arc<Self>) {
        if self.state.wake() {
            self.resume();
        }
    }

    #[inline(never)]
    fn resume(self: &Arc<Self>) {
        self.scheduler.count(Event::Woken);
        self.extras.hold_clock();
        self.enqueue(self.is_short());
    }

    fn enqueue(self: &Arc<Self>, is_short: bool) {
        if self.scheduler.counters().timings.is_some() {
            self.queued_at.store(now(), Relaxed);
        }
        self.charge(|| is_short);
        self.push(is_short);
    }

    fn push(self: &Arc<Self>, is_short: bool) {
        let key = self.extras.charge().and_then(Charge::key);
        match self.has_parts() {
            false => self.scheduler.enqueue(self.clone(), is_short, key),
            true => (self.scheduler).enqueue_beside_parts(self.clone(), is_short, key),
        }
    }

    /// Whether it runs beside the Tokio tasks that it has spawned in the CPU context.
    fn has_parts(&self) -> bool {
        // Relaxed, as for the registry key.
        W::link(&self.link).is_some_and(|link| link.in_cpu_context.load(Relaxed))
    }

    /// Call before the job is queued.
    #[inline]
    pub(super) fn charge(&self, is_short: impl FnOnce() -> bool) {
        if let Some(charge) = self.extras.charge() {
            let sites = &self.scheduler.counters().sites;
            charge.queue(|| sites.held(self.scheduler.site()), is_short());
        }
    }

    /// For the thread to which the state gives the slot.
    pub(super) fn slot(&self) -> MutexGuard<'_, Slot<W::Output, W>> {
        let slot = self.slot.try_lock().ok();
        slot.expect("the state gives the slot to one thread at a time")
    }

    /// Call once, on the thread that has closed the job.
    pub(super) fn notify_closed(&self, closed: Closed) {
        self.scheduler.count(Event::of_close(closed.cause));
        self.scheduler.count(match closed.was_queued {
            true => Event::ClosedQueued,
            false => Event::ClosedSuspended,
        });
        self.wake_awaiter(closed.interest);
        // It is lost: no awaiter learns of its end, which was not requested. (If it is detached
        // later, `drop_join_handle` finds that.)
        if closed.interest.is_detached() && !closed.cause.is_requested() {
            self.scheduler.count_lost();
        }
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

    pub(super) fn wake_awaiter(&self, interest: JoinInterest) {
        let awaiter = interest.has_waker().then(|| self.awaiter.take());
        if let Some(awaiter) = awaiter.flatten() {
            // A waker is user code, too.
            run_hook("the waker of a task's awaiter", || awaiter.wake());
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

    pub(super) fn leave_registry(&self) {
        let link = W::link(&self.link).filter(|link| link.registry_key.load(Relaxed) != 0);
        // Two threads may discard a closed job: the swap lets one of them remove the key.
        let key = link.and_then(|link| RegistryKey::new(link.registry_key.swap(0, Relaxed)));
        if let Some(key) = key {
            self.scheduler.unregister(key);
        }
    }
}

impl<W: Work, S: Schedule> Runnable for Job<W, S> {
    fn run(self: Arc<Self>, worker: &mut Worker<'_>) -> StepEnd {
        worker.get_ready(|| self.has_ended());
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
                self.push(self.is_short());
                StepEnd::Suspended
            }
            Some(ToIdle::Requeue) => {
                let yielded = worker.yielded;
                return StepEnd::Requeue { job: self, yielded };
            }
            _ => StepEnd::Ended,
        };
        run_hook(JOB_DESTRUCTOR, || drop(self));
        end
    }

    fn is_short(&self) -> bool {
        self.scheduler.is_short(self.key().is_some())
    }

    fn key(&self) -> Option<&Key> {
        self.extras.charge().and_then(Charge::key)
    }

    fn close(&self, cause: CloseReason) {
        if let Some(closed) = self.state.close(cause) {
            self.notify_closed(closed);
        }
    }

    fn discard(&self) {
        self.leave_registry();
        if self.state.progress() == Progress::Finished {
            // The slot belongs to the awaiter.
            return;
        }
        // Two threads may discard the same closed job. One gets the slot; the other one finds
        // nothing to do.
        let slot = self.slot.try_lock().ok();
        if let Some(work) = slot.and_then(|mut slot| slot.take_work()) {
            // Inside the span in which it ran, as a user expects.
            run_hook("the destructor of a job's captures", || {
                self.extras.in_scope(|| drop(work));
            });
            // Only now: the limit bounds what waiting jobs hold in memory.
            self.extras.release_permit();
        }
        // Also if there is no work: a wake-up may hold the clock of a job that is closed.
        let _clock = self.extras.take_clock();
    }

    fn end_request(&self) -> Option<CloseReason> {
        let is_late = || has_passed(self.extras.deadline()).then_some(CloseReason::Expired);
        if self.state.is_cancel_requested() {
            Some(CloseReason::Cancelled)
        } else if self.has_ended() {
            None
        } else {
            self.scheduler.reason_for_jobs().or_else(is_late)
        }
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
        self.state.request_cancel();
        if let Some(closed) = self.state.close_unbegun() {
            // It takes no time any more. Its permit goes back with its captures.
            self.extras.charge().into_iter().for_each(Charge::pause);
            self.notify_closed(closed);
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
        let mut progress = self.state.progress();
        if progress == Progress::NotYet {
            self.awaiter.register(cx.waker());
            progress = self.state.set_join_waker();
            if progress != Progress::NotYet {
                // The thread that ended the job did not see the waker.
                drop(self.awaiter.take());
            }
        }
        match progress {
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
        let (progress, interest) = self.state.set_join_dropped(detached);
        if interest.has_waker() {
            drop(self.awaiter.take());
        }
        let is_lost = match progress {
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
