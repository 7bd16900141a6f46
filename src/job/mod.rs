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
mod tokio_task;
mod work;

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_task::ArcWake;
use tokio::task::JoinHandle;

use crate::budget;
use crate::error::{Cause, JoinError};
use crate::lane::{AwaitedKey, Event, LEFT_BEHIND, Lane, Level};
use crate::panics::{call_logged, catch, run_hook};
use crate::sync::{MutexGuard, Ordering::Relaxed};
use crate::trace::warn_of_lost_jobs;
use completion::{Completion, Slot, wake};
pub(crate) use extras::Extras;
use state::{Audience, Close, Paused, Progress, Start, State};
use tokio_task::JobTask;
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

/// A step has begun.
struct Begun {
    /// It is the job's first.
    is_first: bool,
    /// Held until the awaiter has been woken.
    #[cfg(feature = "test-util")]
    _clock: Option<clock_hold::ClockHold>,
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

    /// Drops the work where a user expects it to be dropped: inside the span
    /// that it ran in.
    fn drop_work(&self, work: W) {
        run_hook("the destructor of a job's captures", || {
            self.extras.in_scope(|| drop(work));
        });
    }

    /// A thread is about to run a step. None if the job was closed: then its work is
    /// to be dropped.
    fn begin(&self) -> Option<Begun> {
        if self.lane().is_closed() {
            self.close(Cause::ShutDown);
        } else if self.extras.is_past_deadline() {
            self.close(Cause::Expired);
        }
        let Start::Run { was_idle } = self.state().start() else {
            return None;
        };
        self.level.counters().count_begun(was_idle);
        Some(Begun {
            is_first: !was_idle,
            #[cfg(feature = "test-util")]
            _clock: self.extras.take_clock(),
        })
    }

    /// The step itself, on the work in `slot`.
    fn compute<S>(
        self: &Arc<Self>,
        slot: &mut Slot<S, W>,
        waker: &Waker,
    ) -> Poll<Result<W::Output, JoinError>> {
        #[cfg(feature = "metrics")]
        let begun = self.level.timings().begin(&self.completion.queued_at);
        let mut cx = Context::from_waker(waker);
        let step = {
            let _permit = self.extras.lend_permit();
            let _step = budget::begin_step();
            catch(|| self.extras.in_scope(|| W::step(self, slot, &mut cx)))
        };
        #[cfg(feature = "metrics")]
        self.level.timings().end(begun);
        let output = match step {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(JoinError::panicked(payload)),
        };
        // Drop the captures before publishing the output, as Tokio does, so that
        // an awaiter never observes them alive.
        if let Some(work) = slot.take_work() {
            self.drop_work(work);
        }
        Poll::Ready(output)
    }

    /// The job has its output, which goes into `slot`, its own.
    fn finish(
        &self,
        mut slot: MutexGuard<'_, Slot<W::Output, W>>,
        output: Result<W::Output, JoinError>,
    ) {
        let panicked = output.is_err();
        *slot = Slot::Output(output);
        drop(slot);
        // An awaiter may rely on these, too.
        self.level.counters().count_in_step(if panicked {
            Event::Panicked
        } else {
            Event::Completed
        });
        self.extras.give_permit_back();
        if panicked {
            // The log may hear of it. The span's scope is foreign code.
            run_hook("a job's span", || {
                self.extras.in_scope(|| wake(self.completion.finish()));
            });
        }
        if !self.has_ended() {
            wake(self.completion.finish());
        }
    }

    /// The step is over and there is no output; a [`Paused::Discard`] is told of.
    fn pause(&self) -> Paused {
        let counters = self.level.counters();
        counters.count_in_step(Event::Rested);
        let paused = self.state().pause(|| self.lane().is_closed());
        match &paused {
            Paused::Rest => {}
            Paused::Requeue => counters.count_in_step(Event::Woken),
            Paused::Discard {
                cause,
                audience,
                was_queued,
            } => self.tell_closed(*cause, *audience, !was_queued),
        }
        paused
    }

    /// Drops the work of a closed job, if it was there still, and what the job held by it.
    fn discard_work(&self, work: Option<W>) {
        if let Some(work) = work {
            self.drop_work(work);
            // Not before: a limit bounds what waiting jobs hold in memory.
            self.extras.give_permit_back();
            #[cfg(feature = "test-util")]
            drop(self.extras.take_clock());
        }
    }

    /// The job was closed just now, by this thread.
    fn tell_closed(&self, cause: Cause, audience: Audience, was_suspended: bool) {
        self.level.counters().count_closed(cause, was_suspended);
        if self.completion.closed(cause, audience) {
            self.lane().note_lost();
        }
    }

    /// A step on a thread that took the job out of the lane's queue. None: it has
    /// ended.
    fn step(self: &Arc<Self>) -> Option<Paused> {
        let Some(_begun) = self.begin() else {
            self.discard();
            return None;
        };
        let own = W::waker(self);
        let mut slot = self.completion.slot();
        match self.compute(&mut *slot, own.as_deref().unwrap_or(Waker::noop())) {
            Poll::Ready(output) => {
                self.leave_registry();
                self.finish(slot, output);
                None
            }
            Poll::Pending => {
                drop(slot);
                self.enter_registry();
                let paused = self.pause();
                if let Paused::Discard { .. } = paused {
                    self.discard();
                }
                Some(paused)
            }
        }
    }

    fn enter_registry(self: &Arc<Self>) {
        let (Some(link), Some(suspended)) = (self.link.as_link(), self.level.suspended()) else {
            return;
        };
        // Relaxed: only the thread that runs or discards the job touches the key,
        // and the state hands the job from one to the next.
        if link.registry_key.load(Relaxed) == 0 {
            let key = suspended.insert(self.clone());
            link.registry_key.store(key + 1, Relaxed);
        }
    }

    fn leave_registry(&self) {
        let (Some(link), Some(suspended)) = (self.link.as_link(), self.level.suspended()) else {
            return;
        };
        if link.registry_key.load(Relaxed) != 0 {
            // Two may discard a closed job: the swap lets one of them remove it.
            if let Some(key) = link.registry_key.swap(0, Relaxed).checked_sub(1) {
                suspended.remove(key);
            }
        }
    }
}

impl<W: Work> Run for Job<W> {
    fn run(self: Arc<Self>) -> After {
        self.level.pause_for_quota(&*self);
        // The step catches what the work panics with. This is for the rest: the
        // subscriber, and what goes with the job's last reference. (Inside of it no
        // reference is moved: that costs more than the rest of a step's bookkeeping.)
        match call_logged(LEFT_BEHIND, || self.step()).flatten() {
            Some(Paused::Rest) => After::Rests,
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
        runtime.spawn(JobTask::new(self))
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
