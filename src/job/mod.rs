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
use crate::error::{Cause, JoinError};
use crate::lane::{AwaitedKey, Event, LEFT_BEHIND, Lane, Level};
use crate::panics::{call_logged, catch, run_hook};
use crate::sync::Ordering::Relaxed;
use crate::trace::warn_of_lost_jobs;
use completion::{Completion, Slot, wake};
pub(crate) use extras::Extras;
use state::{Audience, Close, Paused, Progress, Start, State};
use work::{AsLink, unconstrained};
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
    Rests(Arc<dyn Run>),
    /// The job was woken in its own step, and belongs back in the queue.
    Again {
        job: Arc<dyn Run>,
        /// It has asked for that, to let others have a turn.
        gave_way: bool,
    },
}

/// The same, as a step tells it. It holds no reference, since moving one through
/// each caller costs a step more than the rest of its bookkeeping.
#[derive(Clone, Copy)]
enum End {
    Ended,
    Rests,
    Again { gave_way: bool },
}

/// What the lane and its backends may do with a job.
pub(crate) trait Run: Cancel {
    /// Runs one step, or drops the work of a job that was closed in the queue.
    /// `tokio`: the context of the Tokio task that runs it, if one does; else a
    /// future gets a waker of the job's own, which puts it into the lane's queue.
    #[must_use]
    fn run(self: Arc<Self>, tokio: Option<&mut Context<'_>>) -> After;
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

    /// Drops the work where a user expects it to be dropped: inside the span
    /// that it ran in.
    fn drop_work(&self, work: W) {
        run_hook("the destructor of a job's captures", || {
            self.extras.in_scope(|| drop(work));
        });
    }

    /// Inside of what catches panics.
    fn step(self: &Arc<Self>, tokio: Option<&Waker>) -> End {
        if self.lane().is_closed() {
            self.close(Cause::ShutDown);
            self.discard();
            return End::Ended;
        }
        if self.extras.is_past_deadline() {
            self.close(Cause::Expired);
        }
        let Start::Run { was_idle } = self.state().start() else {
            self.discard();
            return End::Ended;
        };
        let counters = self.level.counters();
        counters.count_begun(was_idle);
        #[cfg(feature = "metrics")]
        let begun = self.level.timings().begin(&self.completion.queued_at);
        // Held until the awaiter has been woken.
        #[cfg(feature = "test-util")]
        let _clock = self.extras.take_clock();
        let own = W::waker(self);
        let waker = tokio.or(own.as_deref()).unwrap_or(Waker::noop());
        let mut cx = Context::from_waker(waker);
        let mut slot = self.completion.slot();
        let step = {
            let _permit = self.extras.lend_permit();
            let _step = budget::begin_step();
            catch(|| self.extras.in_scope(|| W::step(self, &mut slot, &mut cx)))
        };
        #[cfg(feature = "metrics")]
        self.level.timings().end(begun);
        let output = match step {
            Ok(Poll::Pending) => {
                drop(slot);
                return self.pause(tokio.filter(|_| !was_idle));
            }
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(JoinError::panicked(payload)),
        };
        self.leave_registry();
        // Drop the captures before publishing the output, as Tokio does, so that
        // an awaiter never observes them alive.
        if let Some(work) = slot.take_work() {
            self.drop_work(work);
        }
        let panicked = output.is_err();
        *slot = Slot::Output(output);
        drop(slot);
        // An awaiter may rely on these, too.
        counters.count_in_step(if panicked {
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
        End::Ended
    }

    /// The step is over and there is no output. `tokio`: of the first such step.
    fn pause(self: &Arc<Self>, tokio: Option<&Waker>) -> End {
        self.enter_registry();
        if let (Some(tokio), Some(link)) = (tokio, self.link.as_link()) {
            // For a thread that closes the job while it rests.
            link.driver.register(tokio);
        }
        let counters = self.level.counters();
        counters.count_in_step(Event::Rested);
        match self.state().pause(|| self.lane().is_closed()) {
            Paused::Rest => End::Rests,
            Paused::Requeue => {
                counters.count_in_step(Event::Woken);
                End::Again {
                    gave_way: budget::gave_way(),
                }
            }
            Paused::Discard {
                cause,
                audience,
                was_queued,
            } => {
                self.tell_closed(cause, audience, !was_queued);
                self.discard();
                End::Ended
            }
        }
    }

    /// The job was closed just now, by this thread.
    fn tell_closed(&self, cause: Cause, audience: Audience, was_suspended: bool) {
        self.level.counters().count_closed(cause, was_suspended);
        if self.completion.closed(cause, audience) {
            self.lane().note_lost();
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
    fn run(self: Arc<Self>, tokio: Option<&mut Context<'_>>) -> After {
        self.level.pause_for_quota(&*self);
        let step = || match tokio {
            Some(cx) if W::IS_CLOSURE => unconstrained(cx, |cx| self.step(Some(cx.waker()))),
            Some(cx) => self.step(Some(cx.waker())),
            None => self.step(None),
        };
        // The step catches what the work panics with. This is for the rest: the
        // subscriber, and what goes with the job's last reference.
        match call_logged(LEFT_BEHIND, step).unwrap_or(End::Ended) {
            End::Ended => {
                run_hook(LEFT_BEHIND, || drop(self));
                After::Ended
            }
            End::Rests => After::Rests(self),
            End::Again { gave_way } => After::Again {
                job: self,
                gave_way,
            },
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
        if let Some(work) = work {
            self.drop_work(work);
            // Not before: a limit bounds what waiting jobs hold in memory.
            self.extras.give_permit_back();
            #[cfg(feature = "test-util")]
            drop(self.extras.take_clock());
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
