//! One job of the CPU lane: a closure or a future, on its way there and back.
//!
//! A closure is one allocation: work, state, output and the awaiting side's
//! waker live behind one `Arc`, the output where the work was. A future is
//! boxed besides, because pinning it inside the `Arc` would take `unsafe`. The
//! lane's queue, the [`Task`], wakers and the registry of suspended jobs all
//! hold that same `Arc`; [`state`] says which of them may do what.
//!
//! [`Task`]: crate::Task

pub(crate) mod budget;
#[cfg(feature = "test-util")]
mod clock_hold;
pub(crate) mod completion;
mod context;
mod extras;
mod join;
mod schedule;
pub(crate) mod state;
mod step;
mod tokio_task;
mod work;

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_task::ArcWake;
use tokio::task::JoinHandle;

use crate::error::{CloseReason, JoinError};
use crate::panics::{call_logged, run_hook};
use crate::trace::warn_of_lost_jobs;
use completion::{Completion, Slot};
pub use context::{Cancelled, JobContext};
pub(crate) use extras::{Extras, QueuePermit};
pub use join::{AbortHandle, Task};
pub(crate) use schedule::{Event, RegistryKey, Schedule};
use state::{Close, JoinInterest, Progress, State, ToIdle};
use tokio_task::{ClosureTask, FutureTask};
use work::AsLink;
pub(crate) use work::{ClosureWork, ContextWork, FutureWork, Work};

/// Names, in the log, what a job drops at its end.
pub(crate) const JOB_DESTRUCTOR: &str = "what a job left behind";

/// What anyone who holds a job may do, whatever its type.
pub(crate) trait Cancel: Send + Sync {
    /// Asks the job to end; returns at once.
    fn cancel(self: Arc<Self>);
    fn has_ended(&self) -> bool;
}

/// What the [`Task`](crate::Task) of a job may do.
pub(crate) trait Join<T>: Cancel {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>>;
    /// The task was dropped: the output will not be asked for.
    fn drop_join_handle(&self);
    /// Nor will this one, and the job is to run all the same.
    fn detach(&self);
    /// Whether this thread is a worker of the lane that has to run for the job to
    /// end. Not for work that is elsewhere.
    fn is_own_worker(&self) -> bool {
        false
    }
    /// Whether the task is to [`register`](Self::register) the job when it has to wait.
    fn registers_awaited(&self) -> bool {
        false
    }
    fn register(self: Arc<Self>) -> Option<RegistryKey> {
        None
    }
    fn unregister(&self, _key: RegistryKey) {}
    // Trait upcasting is newer than the MSRV.
    fn as_cancel(self: Arc<Self>) -> Arc<dyn Cancel>;
}

/// What a step leaves to be done.
pub(crate) enum StepEnd {
    /// Nothing: the job has ended, or was closed.
    Ended,
    /// Nothing, until it is woken.
    Suspended,
    /// The job was woken in its own step, and belongs back in the queue.
    Requeue {
        job: Arc<dyn Run>,
        /// It has asked for that, to let others have a turn.
        yielded: bool,
    },
}

/// What the lane and its workers may do with a job.
pub(crate) trait Run: Cancel {
    /// Runs one step, or drops the work of a job that was closed in the queue.
    #[must_use]
    fn run(self: Arc<Self>) -> StepEnd;
    /// Makes a task of that runtime of a job that has not run yet.
    fn spawn_on(self: Arc<Self>, runtime: &tokio::runtime::Handle) -> JoinHandle<()>;
    /// Closes a job that isn't running, and tells its awaiter at once. The caller
    /// then sees to [`discard`](Self::discard).
    fn close(&self, cause: CloseReason);
    /// Drops the work of a closed job. May be called by more than one.
    fn discard(&self);
    /// Whether the job's own code is to end soon.
    fn is_cancel_requested(&self) -> bool;
    /// Runs `f` inside the span that the job was submitted in.
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

    /// Before it is queued, for the first time.
    pub(crate) fn submitted(&self) {
        self.scheduler.count(Event::Submitted);
        self.time_queued();
    }

    fn time_queued(&self) {
        #[cfg(feature = "metrics")]
        crate::metrics::timings::Timings::queued(&self.completion.queued_at);
    }

    fn throttle(&self) {
        self.scheduler
            .throttle(|| self.scheduler.is_closed() || self.has_ended());
    }

    /// The job was closed just now, by this thread.
    fn notify_closed(&self, cause: CloseReason, interest: JoinInterest, was_suspended: bool) {
        self.scheduler.count(match cause {
            CloseReason::Cancelled => Event::Cancelled,
            CloseReason::Expired => Event::Expired,
            _ => Event::Dropped,
        });
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
    fn run(self: Arc<Self>) -> StepEnd {
        self.throttle();
        // The step catches what the work panics with. This is for the rest: the
        // subscriber, and what goes with the job's last reference. (Inside of it no
        // reference is moved: that costs more than the rest of a step's bookkeeping.)
        match call_logged(JOB_DESTRUCTOR, || self.step()).flatten() {
            Some(ToIdle::Suspended) => {
                run_hook(JOB_DESTRUCTOR, || drop(self));
                StepEnd::Suspended
            }
            Some(ToIdle::Requeue) => StepEnd::Requeue {
                job: self,
                yielded: budget::yielded(),
            },
            _ => {
                run_hook(JOB_DESTRUCTOR, || drop(self));
                StepEnd::Ended
            }
        }
    }

    fn spawn_on(self: Arc<Self>, runtime: &tokio::runtime::Handle) -> JoinHandle<()> {
        if W::IS_CLOSURE {
            runtime.spawn(ClosureTask(Some(self)))
        } else {
            runtime.spawn(FutureTask::new(self))
        }
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
            // The slot is the awaiter's.
            return;
        }
        // Two may discard the same closed job; the loser has nothing to do.
        let work = self
            .completion
            .try_slot()
            .and_then(|mut slot| slot.take_work());
        self.discard_work(work);
    }

    fn is_cancel_requested(&self) -> bool {
        let is_over = || self.scheduler.is_closed() || self.extras.is_past_deadline();
        self.state().is_cancel_requested() || (!self.has_ended() && is_over())
    }

    fn in_span(&self, f: &mut dyn FnMut()) {
        self.extras.in_scope(f);
    }
}

// Not `std::task::Wake`: a waker of that kind counts as a reference, and here
// most last for one step.
impl<F, S> ArcWake for Job<FutureWork<F>, S>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Schedule,
{
    fn wake_by_ref(job: &Arc<Self>) {
        if job.state().wake() {
            job.scheduler.count(Event::Woken);
            job.time_queued();
            job.scheduler.enqueue(job.clone());
        }
    }
}

impl<W: Work, S: Schedule> Cancel for Job<W, S> {
    fn cancel(self: Arc<Self>) {
        self.state().request_cancel();
        match self.state().close(CloseReason::Cancelled) {
            Close::WasQueued(interest) => {
                self.notify_closed(CloseReason::Cancelled, interest, false)
            }
            Close::WasIdle(interest) => {
                self.notify_closed(CloseReason::Cancelled, interest, true);
                // Its destructors belong on the lane, not on the canceller's thread:
                // there its Tokio task drops it, or a worker that finds it closed.
                match self.link.as_link().and_then(|link| link.driver.take()) {
                    Some(tokio_task) => tokio_task.wake(),
                    None => {
                        let scheduler = self.scheduler.clone();
                        scheduler.enqueue(self);
                    }
                }
            }
            Close::No => {}
        }
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

    fn registers_awaited(&self) -> bool {
        self.scheduler.registers_awaited()
    }

    fn register(self: Arc<Self>) -> Option<RegistryKey> {
        let key = self.scheduler.register(self.clone());
        // Against the control thread, which looks into the registry after the close.
        if self.scheduler.is_closed() {
            self.close(CloseReason::ShutDown);
        }
        Some(key)
    }

    fn unregister(&self, key: RegistryKey) {
        self.scheduler.unregister(key);
    }

    fn as_cancel(self: Arc<Self>) -> Arc<dyn Cancel> {
        self
    }
}
