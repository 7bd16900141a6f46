//! One job of the CPU lane: a closure or a future, on its way there and back.
//!
//! A closure is one allocation: work, state, output and the awaiting side's
//! waker live behind one `Arc`, the output where the work was. A future is
//! boxed besides, because pinning it inside the `Arc` would take `unsafe`. The
//! lane's queue, the [`Task`], wakers and the registry of suspended jobs all
//! hold that same `Arc`; [`state`] says which of them may do what.
//!
//! [`Task`]: crate::Task

#[cfg(feature = "test-util")]
mod clock_hold;
pub(crate) mod completion;
mod extras;
pub(crate) mod state;
mod step;
mod tokio_task;
mod work;

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_task::ArcWake;
use tokio::task::JoinHandle;

use crate::budget;
use crate::error::{Cause, JoinError};
use crate::lane::{AwaitedKey, Event, LEFT_BEHIND, Lane, Level};
use crate::panics::{call_logged, run_hook};
use crate::trace::warn_of_lost_jobs;
use completion::{Completion, Slot};
pub(crate) use extras::Extras;
use state::{Close, Paused, Progress, State};
use tokio_task::{ClosureTask, FutureTask};
use work::AsLink;
pub(crate) use work::{ClosureWork, ContextWork, FutureWork, Link, Work};

/// What anyone who holds a job may do, whatever its type.
pub(crate) trait Cancel: Send + Sync {
    /// Asks the job to end; returns at once.
    fn cancel(self: Arc<Self>);
    fn has_ended(&self) -> bool;
}

/// What a job's own code asks of it, by a [`JobContext`](crate::JobContext).
pub(crate) trait Ask: Send + Sync {
    fn cancel_is_wanted(&self) -> bool;
    /// Runs `f` inside the span that the job was submitted in.
    fn in_span(&self, f: &mut dyn FnMut());
}

/// What the [`Task`](crate::Task) of a job may do.
pub(crate) trait Join<T>: Cancel {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>>;
    /// The task was dropped: the output will not be asked for.
    fn abandon(&self);
    /// Nor will this one, and the job is to run all the same.
    fn detach(&self);
    /// The lane that has to run for the job to end; none for work that is
    /// elsewhere.
    fn lane(&self) -> Option<&Arc<Lane>>;
    /// Whether the lane has a register of awaited jobs.
    fn wants_register(&self) -> bool {
        self.lane().is_some_and(|lane| lane.awaited.is_some())
    }
    /// Enters the job into it.
    fn enter_awaited(self: Arc<Self>) -> Option<AwaitedKey> {
        None
    }
    // Trait upcasting is newer than the MSRV.
    fn as_cancel(self: Arc<Self>) -> Arc<dyn Cancel>;
}

/// What a step leaves to be done.
pub(crate) enum After {
    /// Nothing: the job has ended, or was closed.
    Ended,
    /// Nothing, until it is woken.
    Rests,
    /// The job was woken in its own step, and belongs back in the queue.
    Again {
        job: Arc<dyn Run>,
        /// It has asked for that, to let others have a turn.
        gave_way: bool,
    },
}

/// What the lane and its backends may do with a job.
pub(crate) trait Run: Cancel {
    /// Runs one step, or drops the work of a job that was closed in the queue.
    #[must_use]
    fn run(self: Arc<Self>) -> After;
    /// Makes a task of that runtime of a job that has not run yet.
    fn spawn_on(self: Arc<Self>, runtime: &tokio::runtime::Handle) -> JoinHandle<()>;
    /// Closes a job that isn't running, and tells its awaiter at once. The caller
    /// then sees to [`discard`](Self::discard).
    fn close(&self, cause: Cause);
    /// Drops the work of a closed job. May be called by more than one.
    fn discard(&self);
    /// None for a closure: it ends with its first step.
    fn link(&self) -> Option<&Link>;
}

pub(crate) struct Job<W: Work> {
    level: Level,
    completion: Completion<W::Output, W>,
    extras: Extras,
    link: W::Link,
}

impl<W: Work> Job<W> {
    pub(crate) fn new(level: Level, work: W, extras: Extras) -> Arc<Self> {
        Arc::new(Self {
            completion: Completion::new(State::queued(), Slot::Work(work)),
            level,
            extras,
            link: W::Link::default(),
        })
    }

    /// Before it is queued, for the first time.
    pub(crate) fn submitted(&self) {
        self.level.counters().count(Event::Submitted);
        self.note_queued();
    }

    fn note_queued(&self) {
        #[cfg(feature = "metrics")]
        crate::lane::Timings::queued(&self.completion.queued_at);
    }

    fn state(&self) -> &State {
        &self.completion.state
    }

    fn lane(&self) -> &Lane {
        self.level.lane()
    }
}

impl<W: Work> Run for Job<W> {
    fn run(self: Arc<Self>) -> After {
        self.level.pause_for_quota(&*self);
        // The step catches what the work panics with. This is for the rest: the
        // subscriber, and what goes with the job's last reference. (Inside of it no
        // reference is moved: that costs more than the rest of a step's bookkeeping.)
        match call_logged(LEFT_BEHIND, || self.step()).flatten() {
            Some(Paused::Rest) => {
                run_hook(LEFT_BEHIND, || drop(self));
                After::Rests
            }
            Some(Paused::Requeue) => After::Again {
                job: self,
                gave_way: budget::gave_way(),
            },
            _ => {
                run_hook(LEFT_BEHIND, || drop(self));
                After::Ended
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

    fn close(&self, cause: Cause) {
        match self.state().close(cause) {
            Close::WasQueued(audience) => self.tell_closed(cause, audience, false),
            Close::WasIdle(audience) => self.tell_closed(cause, audience, true),
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

    fn link(&self) -> Option<&Link> {
        self.link.as_link()
    }
}

// Not `std::task::Wake`: a waker of that kind counts as a reference, and here
// most last for one step.
impl<F> ArcWake for Job<FutureWork<F>>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn wake_by_ref(job: &Arc<Self>) {
        if job.state().wake() {
            job.level.counters().count(Event::Woken);
            job.note_queued();
            job.level.enqueue(job.clone());
        }
    }
}

impl<W: Work> Cancel for Job<W> {
    fn cancel(self: Arc<Self>) {
        self.state().want_cancel();
        match self.state().close(Cause::Cancelled) {
            Close::WasQueued(audience) => self.tell_closed(Cause::Cancelled, audience, false),
            Close::WasIdle(audience) => {
                self.tell_closed(Cause::Cancelled, audience, true);
                // Its destructors belong on the lane, not on the canceller's
                // thread: it goes there as a closed job, to be discarded.
                let level = self.level.clone();
                level.send_closed(self);
            }
            Close::No => {}
        }
    }

    fn has_ended(&self) -> bool {
        self.state().has_ended()
    }
}

impl<W: Work> Ask for Job<W> {
    fn cancel_is_wanted(&self) -> bool {
        let is_over = || self.lane().is_closed() || self.extras.is_past_deadline();
        self.state().cancel_is_wanted() || (!self.has_ended() && is_over())
    }

    fn in_span(&self, f: &mut dyn FnMut()) {
        self.extras.in_scope(f);
    }
}

impl<W: Work> Join<W::Output> for Job<W> {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<W::Output, JoinError>> {
        self.completion.poll(cx)
    }

    fn abandon(&self) {
        self.completion.abandon();
    }

    fn detach(&self) {
        if self.completion.detach() {
            warn_of_lost_jobs(1);
        }
    }

    fn lane(&self) -> Option<&Arc<Lane>> {
        Some(self.level.lane())
    }

    fn enter_awaited(self: Arc<Self>) -> Option<AwaitedKey> {
        let level = self.level.clone();
        let key = level.lane().awaited.as_ref()?.enter(self.clone());
        // Against the warden, which looks into the register after the close.
        if level.lane().is_closed() {
            self.close(Cause::ShutDown);
        }
        Some(key)
    }

    fn as_cancel(self: Arc<Self>) -> Arc<dyn Cancel> {
        self
    }
}
