//! One job of the CPU lane: a closure or a future, from its submission to its output.
//!
//! A closure needs one allocation: work, state, output and the awaiter's waker live
//! behind one `Arc`, and the output takes the memory of the work. A future is boxed in
//! addition, because pinning it inside the `Arc` would take `unsafe`. The lane's queue,
//! the [`Task`], the wakers and the registry of suspended jobs all hold the same `Arc`.
//! [`state`] defines which of them may do what.
//!
//! **A cancel** (`Task::abort`, its drop, or an `AbortHandle`, all by
//! [`Cancel::cancel`]) never blocks, and does what the job's phase allows:
//!
//! - *Queued*: the job is closed and its awaiter notified. The worker that pops it drops
//!   the captures.
//! - *Suspended*: the same. The canceller queues the job once more, so that a thread of
//!   the lane drops the captures.
//! - *Running*: a flag in its state. A future's runner finds it after the step and
//!   drops the future. A closure sees it by `JobContext::checkpoint`.
//!
//! A `spawn_io` is no such job, but a Tokio task of the I/O lane, which a cancel aborts
//! ([`IoJoin`]): its awaiter is notified when that lane has dropped the future.
//!
//! [`Task`]: crate::Task

mod abort_handle;
pub(crate) mod budget;
#[cfg_attr(not(feature = "test-util"), path = "no_clock_hold.rs")]
mod clock_hold;
pub(crate) mod completion;
mod context;
mod event;
mod extras;
mod io;
mod join;
mod schedule;
pub(crate) mod slice;
pub(crate) mod state;
mod step;
mod work;
mod worker;

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_task::ArcWake;
use stallwatch::Name;

use crate::error::{CloseReason, JoinError};
use crate::metrics::call_sites::Length;
use crate::panics::{call_logged, run_hook};
use crate::trace::warn_of_lost_jobs;
pub use abort_handle::AbortHandle;
use completion::{Completion, Slot};
pub use context::{Cancelled, JobContext};
pub(crate) use event::{Event, Page};
pub(crate) use extras::{Extras, has_passed};
pub(crate) use io::{IoJoin, Made};
pub use join::Task;
pub(crate) use schedule::{RegistryKey, Schedule};
use state::{Close, JoinInterest, Progress, State, ToIdle};
pub(crate) use work::{FutureWork, Work, closure, closure_with};
pub(crate) use worker::Worker;

/// Names, in the log, the values that a job drops at its end.
pub(crate) const JOB_DESTRUCTOR: &str = "what a job left behind";

/// The operations of every holder of a job, whatever its type.
pub(crate) trait Cancel: Send + Sync {
    /// Requests the end of the job; returns at once.
    /// Returns the site of a closure that has not begun, and now never does.
    fn cancel(self: Arc<Self>) -> Option<Name>;
    fn has_ended(&self) -> bool;
}

/// The operations of the [`Task`] of a job.
pub(crate) trait Join<T>: Cancel {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>>;
    /// The task was dropped: no awaiter will take the output.
    fn drop_join_handle(&self);
    /// The task was detached: the same, and the job logs its loss.
    fn detach(&self);
    /// Whether the current thread is a worker of the lane on which the job runs.
    fn is_own_worker(&self) -> bool;
    /// The I/O runtime, which has the timers.
    fn io(&self) -> Option<&tokio::runtime::Handle>;
    // The MSRV has no trait upcasting.
    fn as_cancel(self: Arc<Self>) -> Arc<dyn Cancel>;
}

/// What the caller has to do after a step.
pub(crate) enum StepEnd {
    /// Nothing: the job has ended, or was closed.
    Ended,
    /// Nothing until a wake: the job is suspended.
    Suspended,
    /// Queue the job again: it was woken during its own step.
    Requeue {
        job: Arc<dyn Run>,
        /// The job yielded to the other jobs of the lane.
        yielded: bool,
    },
}

/// The operations of the lane and its workers on a job.
pub(crate) trait Run: Cancel {
    /// Runs one step, or drops the work of a job that was closed before.
    #[must_use]
    fn run(self: Arc<Self>, worker: &mut Worker<'_>) -> StepEnd;
    /// Closes the job and notifies its awaiter at once; does nothing if the job runs or
    /// has ended. The caller then makes sure that [`discard`](Self::discard) is called.
    fn close(&self, cause: CloseReason);
    /// Drops the work of a closed job. Several threads may call it.
    fn discard(&self);
    /// Why the job's own code should end soon, if it should.
    fn end_request(&self) -> Option<CloseReason>;
    /// How long its next step takes, as far as the lane knows.
    fn length(&self) -> Length;
    /// Runs `f` inside the span in which the job was submitted.
    fn in_span(&self, f: &mut dyn FnMut());
}

pub(crate) struct Job<W: Work, S: Schedule> {
    scheduler: S,
    completion: Completion<W::Output, W>,
    extras: Extras,
    link: W::Link,
}

impl<W: Work, S: Schedule> Job<W, S> {
    pub(crate) fn new(scheduler: S, work: W, extras: Extras) -> Arc<Self> {
        Arc::new(Self {
            completion: Completion::new(State::queued(), Slot::Work(work)),
            scheduler,
            extras,
            link: W::Link::default(),
        })
    }

    /// Call before the job is queued for the first time.
    pub(crate) fn submitted(&self) {
        self.scheduler.submitted();
        self.time_queued();
    }

    fn time_queued(&self) {
        if let Some(timings) = self.scheduler.timings() {
            timings.queued(&self.completion.queued_at);
        }
    }

    /// Call once, on the thread that has closed the job.
    fn notify_closed(&self, cause: CloseReason, interest: JoinInterest, was_suspended: bool) {
        self.scheduler.count(Event::of_close(cause));
        self.scheduler.count(if was_suspended {
            Event::ClosedSuspended
        } else {
            Event::ClosedQueued
        });
        if self.completion.closed(cause, interest) {
            self.scheduler.count_lost();
        }
    }

    fn state(&self) -> &State {
        &self.completion.state
    }
}

impl<W: Work, S: Schedule> Run for Job<W, S> {
    fn run(self: Arc<Self>, worker: &mut Worker<'_>) -> StepEnd {
        worker.throttle(|| self.has_ended());
        // `step` itself catches a panic of the work. This call catches a panic of the
        // subscriber, and of destructors that run with the job's last reference. The
        // closure borrows `self`: moving the reference costs more than the rest of a
        // step's bookkeeping.
        let end = match call_logged(JOB_DESTRUCTOR, || self.step(worker)).flatten() {
            Some(ToIdle::Suspended) => StepEnd::Suspended,
            Some(ToIdle::Requeue) => {
                return StepEnd::Requeue {
                    job: self,
                    yielded: worker.yielded,
                };
            }
            _ => StepEnd::Ended,
        };
        run_hook(JOB_DESTRUCTOR, || drop(self));
        end
    }

    fn close(&self, cause: CloseReason) {
        match self.state().close(cause) {
            Close::WasQueued(interest) => self.notify_closed(cause, interest, false),
            Close::WasIdle(interest) => self.notify_closed(cause, interest, true),
            Close::No => {}
        }
    }

    fn discard(&self) {
        self.leave_registry();
        if self.state().progress() == Progress::Finished {
            // The slot belongs to the awaiter.
            return;
        }
        // Two threads may discard the same closed job; the second finds nothing to do.
        let work = self
            .completion
            .try_slot()
            .and_then(|mut slot| slot.take_work());
        self.discard_work(work);
    }

    fn end_request(&self) -> Option<CloseReason> {
        if self.state().is_cancel_requested() {
            Some(CloseReason::Cancelled)
        } else if self.has_ended() {
            None
        } else if self.scheduler.is_closed() {
            Some(CloseReason::ShutDown)
        } else {
            let is_late = self.extras.is_past_deadline();
            is_late.then_some(CloseReason::Expired)
        }
    }

    fn length(&self) -> Length {
        self.scheduler.length()
    }

    fn in_span(&self, f: &mut dyn FnMut()) {
        self.extras.in_scope(f);
    }
}

// Not `std::task::Wake`: such a waker owns a reference to the job. Here most wakers
// live for one step only, so they borrow the reference of the step.
impl<T: Send + 'static, S: Schedule> ArcWake for Job<FutureWork<T>, S> {
    fn wake_by_ref(job: &Arc<Self>) {
        if job.state().wake() {
            job.scheduler.count(Event::Woken);
            job.extras.hold_clock();
            job.time_queued();
            job.scheduler.enqueue(job.clone());
        }
    }
}

impl<W: Work, S: Schedule> Cancel for Job<W, S> {
    fn cancel(self: Arc<Self>) -> Option<Name> {
        self.state().request_cancel();
        match self.state().close(CloseReason::Cancelled) {
            Close::WasQueued(interest) => {
                self.notify_closed(CloseReason::Cancelled, interest, false);
                return W::IS_CLOSURE.then(|| self.scheduler.site());
            }
            Close::WasIdle(interest) => {
                self.notify_closed(CloseReason::Cancelled, interest, true);
                // The job's destructors must run on the lane, not on the canceller's
                // thread.
                let scheduler = self.scheduler.clone();
                scheduler.enqueue(self);
            }
            Close::No => {}
        }
        None
    }

    fn has_ended(&self) -> bool {
        self.state().has_ended()
    }
}

impl<W: Work, S: Schedule> Join<W::Output> for Job<W, S> {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<W::Output, JoinError>> {
        self.completion.poll(cx)
    }

    fn drop_join_handle(&self) {
        self.completion.drop_join_handle();
    }

    fn detach(&self) {
        if self.completion.detach() {
            warn_of_lost_jobs(1);
        }
    }

    fn is_own_worker(&self) -> bool {
        self.scheduler.is_own_worker()
    }

    fn io(&self) -> Option<&tokio::runtime::Handle> {
        self.scheduler.io()
    }

    fn as_cancel(self: Arc<Self>) -> Arc<dyn Cancel> {
        self
    }
}
