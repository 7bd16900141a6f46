//! One job of the CPU lane: a closure or a future, on its way there and back.
//!
//! A closure is one allocation: work, state, output and the awaiting side's
//! waker live behind one `Arc`. A future is boxed besides, because pinning it
//! inside the `Arc` would take `unsafe`. The lane's queue, the [`Task`], wakers
//! and the registry of suspended jobs all hold that same `Arc`; [`state`] says
//! which of them may do what.
//!
//! [`Task`]: crate::Task

pub(crate) mod completion;
pub(crate) mod state;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::budget;
use crate::context;
use crate::error::JoinError;
use crate::lane::{Lane, Level};
use crate::panics::{catch, run_hook};
use crate::sync::{AtomicUsize, AtomicWaker, Mutex, Ordering::Relaxed};
use crate::trace::{Carried, warn_of_lost_jobs};
use completion::Completion;
use state::{Cause, Close, Paused, Start, State};

/// What a job computes: a closure in one step, a future in several.
pub(crate) trait Work: Send + 'static {
    type Output: Send + 'static;
    /// Whether a step may end without an output.
    const MAY_PAUSE: bool;
    fn step(&mut self, cx: &mut Context<'_>) -> Poll<Self::Output>;
}

pub(crate) struct ClosureWork<F>(Option<F>);

impl<F> ClosureWork<F> {
    pub(crate) fn new(closure: F) -> Self {
        Self(Some(closure))
    }
}

impl<F, T> Work for ClosureWork<F>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    type Output = T;
    const MAY_PAUSE: bool = false;
    fn step(&mut self, _cx: &mut Context<'_>) -> Poll<T> {
        let closure = self.0.take().expect("a closure has one step");
        Poll::Ready(closure())
    }
}

pub(crate) struct FutureWork<F>(Pin<Box<F>>);

impl<F> FutureWork<F> {
    pub(crate) fn new(future: F) -> Self {
        Self(Box::pin(future))
    }
}

impl<F> Work for FutureWork<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    type Output = F::Output;
    const MAY_PAUSE: bool = true;
    fn step(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.0.as_mut().poll(cx)
    }
}

/// What anyone who holds a job may do, whatever its type.
pub(crate) trait Cancel: Send + Sync {
    /// Asks the job to end; returns at once.
    fn cancel(self: Arc<Self>);
    fn cancel_is_wanted(&self) -> bool;
    fn has_ended(&self) -> bool;
    /// Runs `f` inside the span that the job was submitted in.
    fn in_span(&self, f: &mut dyn FnMut());
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

/// What the lane and its backends may do with a job.
pub(crate) trait Run: Cancel {
    /// Runs one step, or drops the work of a job that was closed in the queue.
    fn run(self: Arc<Self>);
    /// Closes a job that isn't running, and tells its awaiter at once. True if
    /// this call did it; the caller then sees to [`discard`](Self::discard).
    fn close(&self, cause: Cause) -> bool;
    /// Drops the work of a closed job. May be called by more than one.
    fn discard(&self);
    /// Where a backend that polls through tasks of its own leaves their waker.
    fn link(&self) -> &Link;
}

/// A job's places in the lane's and the backend's books.
#[derive(Default)]
pub(crate) struct Link {
    /// Wakes the Tokio task that adopted the job (`Backend::Runtime` only).
    pub(crate) driver: AtomicWaker,
    /// Key in the registry of suspended jobs, plus one; 0 = not in it. Written
    /// by the thread that runs or discards the job.
    registry_key: AtomicUsize,
}

pub(crate) struct Job<W: Work> {
    level: Level,
    completion: Completion<W::Output>,
    /// As in `Completion`: the state says whose it is, nobody waits for it.
    work: Mutex<Option<W>>,
    carried: Carried,
    link: Link,
}

impl<W: Work> Job<W> {
    pub(crate) fn new(level: Level, work: W) -> Arc<Self> {
        Arc::new(Self {
            level,
            completion: Completion::new(State::queued()),
            work: Mutex::new(Some(work)),
            carried: Carried::capture(),
            link: Link::default(),
        })
    }

    fn state(&self) -> &State {
        &self.completion.state
    }

    fn lane(&self) -> &Lane {
        self.level.lane()
    }

    fn take_work(&self) -> Option<W> {
        // Two may discard the same closed job; the loser has nothing to do.
        self.work.try_lock().ok()?.take()
    }

    fn put_work(&self, work: W) {
        *self
            .work
            .try_lock()
            .expect("the state gives the work to one thread at a time") = Some(work);
    }

    /// Drops the work where a user expects it to be dropped: inside the span
    /// that it ran in.
    fn drop_work(&self, work: W) {
        run_hook("the destructor of a job's captures", || {
            self.carried.in_scope(|| drop(work));
        });
    }

    /// The step is over and there is no output.
    fn pause(self: Arc<Self>, work: W) {
        if let Some(cause) = self.must_close() {
            self.leave_registry();
            self.drop_work(work);
            self.state().close_running(cause);
            self.tell_closed(cause);
            return;
        }
        self.put_work(work);
        self.enter_registry();
        match self.state().pause(|| self.must_close()) {
            Paused::Rest => {}
            Paused::Requeue => {
                let gave_way = budget::gave_way();
                self.level.reschedule(self.clone(), gave_way);
            }
            Paused::Discard(cause) => {
                self.tell_closed(cause);
                self.discard();
            }
        }
    }

    fn tell_closed(&self, cause: Cause) {
        if self.completion.closed(cause) {
            self.lane().note_lost();
        }
    }

    fn must_close(&self) -> Option<Cause> {
        if self.state().cancel_is_wanted() {
            Some(Cause::Cancelled)
        } else if self.lane().is_closed() {
            Some(Cause::ShutDown)
        } else {
            None
        }
    }

    fn enter_registry(self: &Arc<Self>) {
        if self.link.registry_key.load(Relaxed) == 0 {
            let key = self.lane().suspended.insert(self.clone());
            self.link.registry_key.store(key + 1, Relaxed);
        }
    }

    fn leave_registry(&self) {
        if let Some(key) = self.link.registry_key.swap(0, Relaxed).checked_sub(1) {
            self.lane().suspended.remove(key);
        }
    }
}

impl<W: Work> Run for Job<W> {
    fn run(self: Arc<Self>) {
        match self.state().start() {
            Start::Run => {}
            Start::Discard => return self.discard(),
            Start::NotQueued => return,
        }
        let mut work = self.take_work().expect("a queued job has its work");
        let waker = W::MAY_PAUSE.then(|| Waker::from(self.clone()));
        let mut cx = Context::from_waker(waker.as_ref().unwrap_or(Waker::noop()));
        let step = context::in_job(&self, || {
            catch(|| self.carried.in_scope(|| work.step(&mut cx)))
        });
        let output = match step {
            Ok(Poll::Pending) => return self.pause(work),
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(JoinError::panicked(payload)),
        };
        self.leave_registry();
        // Before the output is told of, as Tokio does: whoever awaits may rely
        // on the captures being gone.
        self.drop_work(work);
        if output.is_ok() {
            self.completion.finish(output);
        } else {
            // The log may hear of it.
            self.carried.in_scope(|| self.completion.finish(output));
        }
    }

    fn close(&self, cause: Cause) -> bool {
        let closed = self.state().close(cause) != Close::No;
        if closed {
            self.tell_closed(cause);
        }
        closed
    }

    fn discard(&self) {
        self.leave_registry();
        if let Some(work) = self.take_work() {
            self.drop_work(work);
        }
    }

    fn link(&self) -> &Link {
        &self.link
    }
}

impl<W: Work> Wake for Job<W> {
    fn wake(self: Arc<Self>) {
        if self.state().wake() {
            let level = self.level.clone();
            level.reschedule(self, false);
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state().wake() {
            self.level.reschedule(self.clone(), false);
        }
    }
}

impl<W: Work> Cancel for Job<W> {
    fn cancel(self: Arc<Self>) {
        if self.has_ended() {
            // What it left behind may hold its context still, and was not
            // cancelled.
            return;
        }
        self.state().want_cancel();
        let found = self.state().close(Cause::Cancelled);
        if found != Close::No {
            self.tell_closed(Cause::Cancelled);
        }
        if found == Close::WasIdle {
            // Its destructors belong on the lane, not on the canceller's
            // thread: it goes there as a closed job, to be discarded.
            let level = self.level.clone();
            level.reschedule(self, false);
        }
    }

    fn cancel_is_wanted(&self) -> bool {
        self.state().cancel_is_wanted() || (!self.state().has_ended() && self.lane().is_closed())
    }

    fn has_ended(&self) -> bool {
        self.state().has_ended()
    }

    fn in_span(&self, f: &mut dyn FnMut()) {
        self.carried.in_scope(f);
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

    fn as_cancel(self: Arc<Self>) -> Arc<dyn Cancel> {
        self
    }
}
