//! [`Head`]: a job without its work, and what its holders do for which the work does not matter.
//!
//! A [`Job`](super::Job) is generic over its work, and a program has as many kinds of jobs as it has closures
//! that it submits. A build with `debug_assertions` has what is here once, which saves a quarter of the
//! compiler's work for such a closure. Any other one has what each step executes inlined there: calls would
//! take 50 instructions more.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::Context;

use super::state::{Closed, JoinInterest, Progress, State, ToIdle};
use super::work::{Extras, Link, has_passed};
use super::{Event, RegistryKey, Runnable, Schedule, Worker};
use crate::error::CloseReason;
use crate::key::Key;
use crate::limits::Charge;
use crate::pace::clock::now;
use crate::panics::call_logged;
use crate::sync::{AtomicWaker, Ordering::Relaxed};

pub(crate) struct Head<S: Schedule> {
    pub(super) scheduler: S,
    pub(super) state: State,
    /// When the job was queued, for its level's histograms; else 0. Only the thread that queues
    /// the job or runs it touches it.
    pub(super) queued_at: AtomicU64,
    awaiter: AtomicWaker,
    pub(super) extras: Extras,
}

impl<S: Schedule> Head<S> {
    #[inline]
    pub(super) fn new(scheduler: S, extras: Extras) -> Self {
        Self {
            scheduler,
            state: State::queued(),
            queued_at: AtomicU64::new(0),
            awaiter: AtomicWaker::new(),
            extras,
        }
    }

    #[inline]
    pub(super) fn submit(&self, job: Arc<dyn Runnable>, by_thread: usize, is_short: bool) {
        let counters = self.scheduler.counters();
        counters.count_from(by_thread, Event::Submitted);
        counters.sites.submitted(self.scheduler.site(), by_thread);
        self.enqueue(job, is_short, false);
    }

    #[inline(never)]
    pub(super) fn resume(&self, job: Arc<dyn Runnable>, has_parts: bool) {
        self.scheduler.count(Event::Woken);
        self.extras.hold_clock();
        self.enqueue(job, self.is_short(), has_parts);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn enqueue(&self, job: Arc<dyn Runnable>, is_short: bool, has_parts: bool) {
        if self.scheduler.counters().timings.is_some() {
            self.queued_at.store(now(), Relaxed);
        }
        self.charge(|| is_short);
        self.push(job, is_short, has_parts);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn push(&self, job: Arc<dyn Runnable>, is_short: bool, has_parts: bool) {
        match has_parts {
            false => self.scheduler.enqueue(job, is_short, self.key()),
            true => (self.scheduler).enqueue_beside_parts(job, is_short, self.key()),
        }
    }

    /// Call before the job is queued.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn charge(&self, is_short: impl FnOnce() -> bool) {
        if let Some(charge) = self.extras.charge() {
            let sites = &self.scheduler.counters().sites;
            charge.queue(|| sites.held(self.scheduler.site()), is_short());
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_short(&self) -> bool {
        self.scheduler.is_short(self.key().is_some())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn key(&self) -> Option<&Key> {
        self.extras.charge().and_then(Charge::key)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn get_ready(&self, worker: &mut Worker<'_>) {
        worker.get_ready(|| self.state.has_ended());
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
        // later, `Join::drop_join_handle` finds that.)
        if closed.interest.is_detached() && !closed.cause.is_requested() {
            self.scheduler.count_lost();
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn wake_awaiter(&self, interest: JoinInterest) {
        let awaiter = interest.has_waker().then(|| self.awaiter.take());
        if let Some(awaiter) = awaiter.flatten() {
            // A waker is user code, too.
            call_logged("the waker of a task's awaiter", || awaiter.wake());
        }
    }

    pub(super) fn close(&self, cause: CloseReason) {
        if let Some(closed) = self.state.close(cause) {
            self.notify_closed(closed);
        }
    }

    /// The lane is closed, or the deadline has passed.
    #[cold]
    pub(super) fn close_instead(&self) {
        let cause = self.scheduler.reason_for_jobs();
        let cause = cause.unwrap_or(CloseReason::Expired);
        if let Some(closed) = self.state.close_uncancelled(cause) {
            self.notify_closed(closed);
        }
    }

    /// Returns whether the job had not begun, and now never does.
    pub(super) fn cancel(&self) -> bool {
        self.state.request_cancel();
        let closed = self.state.close_unbegun();
        closed.is_some_and(|closed| {
            // It takes no time any more. Its permit goes back with its captures.
            self.extras.charge().into_iter().for_each(Charge::pause);
            self.notify_closed(closed);
            true
        })
    }

    pub(super) fn end_request(&self) -> Option<CloseReason> {
        let is_late = || has_passed(self.extras.deadline()).then_some(CloseReason::Expired);
        if self.state.is_cancel_requested() {
            Some(CloseReason::Cancelled)
        } else if self.state.has_ended() {
            None
        } else {
            self.scheduler.reason_for_jobs().or_else(is_late)
        }
    }

    /// After a step that has left its output. Call before the awaiter is told, who may rely on the counters
    /// and on the permit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn count_end(&self, closed: Option<Option<CloseReason>>, worker: &Worker<'_>) {
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
    }

    /// After a step without an output. The caller drops the work: of one that is closed, whose awaiter is
    /// notified; and of one that is cancelled, before [`end_cancelled`](Self::end_cancelled).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn pause(&self, worker: &Worker<'_>) -> ToIdle {
        worker.count(Event::Suspended);
        let reason_for_jobs = || worker.is_closed().then(|| self.scheduler.reason_for_jobs());
        // Before another thread may wake it.
        self.extras.charge().into_iter().for_each(Charge::pause);
        let paused = self.state.to_idle(&|| reason_for_jobs().flatten());
        match paused {
            ToIdle::Requeue => {
                worker.count(Event::Woken);
                self.extras.hold_clock();
                // As the queue does: one that yielded goes behind the others.
                self.charge(|| !worker.yielded && self.is_short());
            }
            ToIdle::Discard(closed) => self.notify_closed(closed),
            ToIdle::Suspended | ToIdle::Cancelled => {}
        }
        paused
    }

    /// Call once its contents are gone: an awaiter may rely on that, and on the counters.
    pub(super) fn end_cancelled(&self, worker: &Worker<'_>) {
        worker.count(Event::Cancelled);
        worker.count(Event::ClosedSuspended);
        self.wake_awaiter(self.state.end_cancelled());
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn leave_registry(&self, link: Option<&Link>) {
        let link = link.filter(|link| link.registry_key.load(Relaxed) != 0);
        // Two threads may discard a closed job: the swap lets one of them remove the key.
        let key = link.and_then(|link| RegistryKey::new(link.registry_key.swap(0, Relaxed)));
        if let Some(key) = key {
            self.scheduler.unregister(key);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn poll_end(&self, cx: &mut Context<'_>) -> Progress {
        let mut progress = self.state.progress();
        if progress == Progress::NotYet {
            self.awaiter.register(cx.waker());
            progress = self.state.set_join_waker();
            if progress != Progress::NotYet {
                // The thread that ended the job did not see the waker.
                drop(self.awaiter.take());
            }
        }
        progress
    }

    /// Returns how far the job was: the caller drops an output.
    #[inline]
    pub(super) fn drop_join_handle(&self, detached: bool) -> Progress {
        let (progress, interest) = self.state.set_join_dropped(detached);
        if interest.has_waker() {
            drop(self.awaiter.take());
        }
        progress
    }
}
