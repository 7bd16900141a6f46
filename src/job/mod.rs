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
mod work;

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_task::ArcWake;

use crate::budget;
use crate::error::JoinError;
use crate::job_context;
use crate::lane::{Expire, Lane, Level, Place, Step};
use crate::panics::{catch, run_hook};
use crate::sync::Ordering::Relaxed;
use crate::trace::warn_of_lost_jobs;
use completion::{Completion, Slot};
pub(crate) use extras::Extras;
use state::{Audience, Cause, Close, Paused, Progress, Start, State};
use work::AsLink;
pub(crate) use work::{ClosureWork, FutureWork, Link, Work};

/// What anyone who holds a job may do, whatever its type.
pub(crate) trait Cancel: Send + Sync {
    /// Asks the job to end; returns at once.
    fn cancel(self: Arc<Self>);
    fn cancel_is_wanted(&self) -> bool;
    fn has_ended(&self) -> bool;
    /// Runs `f` inside the span that the job was submitted in.
    fn in_span(&self, f: &mut dyn FnMut());
    /// What the job came in by, for what it submits.
    fn place(&self) -> Option<Place>;
}

/// What the [`Task`](crate::Task) of a job may do.
pub(crate) trait Join<T>: Cancel {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>>;
    /// Nobody will ask for the output.
    fn abandon(&self);
    /// Nor for this one, which is to run all the same.
    fn detach(&self);
    /// The lane that has to run for the job to end; none for work that is
    /// elsewhere.
    fn lane(&self) -> Option<&Arc<Lane>>;
    // Trait upcasting is newer than the MSRV.
    fn as_cancel(self: Arc<Self>) -> Arc<dyn Cancel>;
}

/// What a step leaves to be done.
pub(crate) enum After {
    Nothing,
    /// It was the last one: this awaiting side is to be woken.
    Wake(Waker),
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
        self.level.books().note_submitted();
        let now = self.level.timings().queued();
        self.completion.queued_at.store(now, Relaxed);
    }

    fn state(&self) -> &State {
        &self.completion.state
    }

    fn lane(&self) -> &Lane {
        self.level.lane()
    }

    /// Drops the work where a user expects it to be dropped: inside the span
    /// that it ran in.
    fn drop_work(&self, work: W) {
        run_hook("the destructor of a job's captures", || {
            self.extras.in_scope(|| drop(work));
        });
    }

    /// The step is over and there is no output.
    fn pause(self: Arc<Self>) -> After {
        self.enter_registry();
        self.level.books().note(Step::Rested);
        match self.state().pause(|| self.lane().is_closed()) {
            Paused::Rest => {
                self.extras.let_clock_go();
                After::Nothing
            }
            Paused::Requeue => {
                self.level.books().note(Step::Woken);
                After::Again {
                    job: self,
                    gave_way: budget::gave_way(),
                }
            }
            Paused::Discard(cause, audience) => {
                self.tell_closed(cause, audience, true);
                self.extras.let_clock_go();
                self.discard();
                After::Nothing
            }
        }
    }

    /// The job was closed just now: by this thread. (One that was suspended does not
    /// hold the clock.)
    fn tell_closed(&self, cause: Cause, audience: Audience, was_suspended: bool) {
        self.level.books().note_closed(cause, was_suspended);
        self.extras.give_place_back();
        if self.completion.closed(cause, audience) {
            self.lane().note_lost();
        }
        if !was_suspended {
            self.extras.let_clock_go();
        }
    }

    fn enter_registry(self: &Arc<Self>) {
        let Some(link) = self.link.as_link() else {
            return;
        };
        if link.registry_key.load(Relaxed) == 0 {
            let key = self.lane().suspended.insert(self.clone());
            link.registry_key.store(key + 1, Relaxed);
        }
    }

    fn leave_registry(&self) {
        let Some(link) = self.link.as_link() else {
            return;
        };
        if link.registry_key.load(Relaxed) != 0 {
            if let Some(key) = link.registry_key.swap(0, Relaxed).checked_sub(1) {
                self.lane().suspended.remove(key);
            }
        }
    }
}

impl<W: Work> Run for Job<W> {
    fn run(self: Arc<Self>) -> After {
        if self.extras.is_past_deadline() {
            self.clone().end(Cause::Expired);
        }
        match self.state().start() {
            Start::Run => {}
            Start::Discard => {
                self.discard();
                return After::Nothing;
            }
            Start::NotQueued => return After::Nothing,
        }
        self.level.books().note(Step::Begun);
        self.level.timings().begins(&self.completion.queued_at);
        let waker = W::waker(&self);
        let mut cx = Context::from_waker(waker.as_deref().unwrap_or(Waker::noop()));
        let mut slot = self.completion.slot();
        let step = job_context::in_job(&self, || {
            catch(|| self.extras.in_scope(|| W::step(&mut slot, &mut cx)))
        });
        let output = match step {
            Ok(Poll::Pending) => {
                drop(slot);
                return self.pause();
            }
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(JoinError::panicked(payload)),
        };
        self.leave_registry();
        // Before the output is told of, as Tokio does: whoever awaits may rely
        // on the captures being gone.
        if let Some(work) = slot.take_work() {
            self.drop_work(work);
        }
        let panicked = output.is_err();
        *slot = Slot::Output(output);
        drop(slot);
        // Whoever awaits may rely on these, too.
        let ending = if panicked {
            Step::Panicked
        } else {
            Step::Completed
        };
        self.level.books().note(ending);
        self.extras.give_place_back();
        let mut waker = None;
        if panicked {
            // The log may hear of it. The span's scope is foreign code.
            run_hook("a job's span", || {
                self.extras.in_scope(|| waker = self.completion.finish());
            });
        }
        if !self.has_ended() {
            waker = self.completion.finish();
        }
        if self.extras.holds_clock() {
            completion::wake(waker.take());
            self.extras.let_clock_go();
        }
        waker.map_or(After::Nothing, After::Wake)
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
            // The slot is the awaiting side's.
            return;
        }
        // Two may discard the same closed job; the loser has nothing to do.
        let work = self
            .completion
            .try_slot()
            .and_then(|mut slot| slot.take_work());
        if let Some(work) = work {
            self.drop_work(work);
        }
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
        // Before anybody can run it.
        job.extras.hold_clock();
        if job.state().wake() {
            job.level.books().note_woken();
            job.level.reschedule(job.clone());
        } else {
            job.extras.let_clock_go();
        }
    }
}

impl<W: Work> Job<W> {
    /// From outside, while the lane goes on: a cancel, a deadline.
    fn end(self: Arc<Self>, cause: Cause) {
        if self.has_ended() {
            // What it left behind may hold its context still, and was not
            // cancelled.
            return;
        }
        self.state().want_end(cause);
        match self.state().close(cause) {
            Close::WasQueued(audience) => self.tell_closed(cause, audience, false),
            Close::WasIdle(audience) => {
                self.tell_closed(cause, audience, true);
                // Its destructors belong on the lane, not on the canceller's
                // thread: it goes there as a closed job, to be discarded.
                let level = self.level.clone();
                level.reschedule(self);
            }
            Close::No => {}
        }
    }
}

impl<W: Work> Expire for Job<W> {
    fn expire(self: Arc<Self>) {
        self.end(Cause::Expired);
    }
}

impl<W: Work> Cancel for Job<W> {
    fn cancel(self: Arc<Self>) {
        self.end(Cause::Cancelled);
    }

    fn cancel_is_wanted(&self) -> bool {
        self.state().cancel_is_wanted() || (!self.state().has_ended() && self.lane().is_closed())
    }

    fn has_ended(&self) -> bool {
        self.state().has_ended()
    }

    fn in_span(&self, f: &mut dyn FnMut()) {
        self.extras.in_scope(f);
    }

    fn place(&self) -> Option<Place> {
        self.extras.place()
    }
}

impl<W: Work> Join<W::Output> for Job<W> {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<W::Output, JoinError>> {
        self.level.briskness().wait_for(self.state());
        self.completion
            .poll(cx, || self.lane().process.is_elsewhere())
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

    fn as_cancel(self: Arc<Self>) -> Arc<dyn Cancel> {
        self
    }
}
