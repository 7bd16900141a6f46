//! The work of a job, a closure or a future, and what it needs in addition.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use futures_task::{WakerRef, waker_ref};
use tokio::runtime::Handle;

use super::clock_hold::{ClockHold, HeldClock};
use super::{Cancelled, JOB_DESTRUCTOR, Job, JobContext, Schedule, Task, budget, worker};
use crate::error::JoinError;
use crate::limits::Charge;
use crate::panics::call_logged;
use crate::sync::{AtomicBool, AtomicUsize};
use crate::trace::{self, Origin};

/// The memory of a job: first its work, then its output.
pub(crate) enum Slot<T, W> {
    Work(W),
    Output(Result<T, JoinError>),
    Empty,
}

impl<T, W> Slot<T, W> {
    /// For a job that has no output yet.
    pub(super) fn take_work(&mut self) -> Option<W> {
        match mem::replace(self, Self::Empty) {
            Self::Work(work) => Some(work),
            _ => None,
        }
    }

    /// For a job that has finished.
    pub(super) fn take_output(&mut self) -> Option<Result<T, JoinError>> {
        match mem::replace(self, Self::Empty) {
            Self::Output(output) => Some(output),
            _ => None,
        }
    }
}

/// The work of a job: a closure has one step, a future has one per poll.
pub(crate) trait Work: Send + Sized + 'static {
    type Output: Send + 'static;
    /// [`Link`] for a future; `()` for a closure, which is never suspended.
    type Link: Default + Send + Sync;
    /// Whether the work has one step only.
    const IS_CLOSURE: bool = true;
    /// Runs one step in place. If it is ready, the output is in the slot instead of the work; an
    /// error there: the work ended itself, for that reason. (The output is not returned, since each
    /// move takes as much of the stack as it is large.)
    fn step<S: Schedule>(
        job: &Arc<Job<Self, S>>,
        slot: &mut Slot<Self::Output, Self>,
        cx: &mut Context<'_>,
    ) -> Poll<()>;
    fn link(_link: &Self::Link) -> Option<&Link> {
        None
    }
    /// The waker for the context of a step; a closure has none.
    fn waker<S: Schedule>(_job: &Arc<Job<Self, S>>) -> Option<WakerRef<'_>> {
        None
    }
}

/// A closure that may ask for the context of its job.
pub(crate) struct ClosureWork<F>(F);

/// A larger closure, or future of the I/O lane, goes into a box of its own: each move takes as much
/// of the stack, and it is moved some ten times before it is queued, and once more where it runs.
///
/// To be asked in a `const` block: the compiler then generates the path of the one answer alone, not
/// both.
pub(crate) const fn is_large<F>() -> bool {
    size_of::<F>() > 2 << 10
}

/// What submits a job: a handle, or a permit.
pub(crate) trait Submit: Sized {
    #[track_caller]
    fn submit<W: Work>(self, work: W) -> Task<W::Output>;

    #[track_caller]
    fn closure<F, T>(self, f: F) -> Task<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        match const { is_large::<F>() } {
            true => self.submit(closure(Box::new(f))),
            false => self.submit(closure(f)),
        }
    }

    #[track_caller]
    fn closure_with<F, T>(self, f: F) -> Task<T>
    where
        F: FnOnce(&JobContext) -> Result<T, Cancelled> + Send + 'static,
        T: Send + 'static,
    {
        match const { is_large::<F>() } {
            true => self.submit(closure_with(Box::new(f))),
            false => self.submit(closure_with(f)),
        }
    }
}

/// The work of a closure that needs no context.
pub(crate) fn closure<F, T>(
    f: F,
) -> ClosureWork<impl FnOnce(&dyn Fn() -> JobContext) -> Result<T, JoinError>>
where
    F: FnOnce() -> T,
{
    warn_of_unpolled_future::<T>();
    ClosureWork(move |_: &dyn Fn() -> JobContext| Ok(f()))
}

/// The work of a closure that gets the context of its job, and may end as its checkpoint says.
fn closure_with<F, T>(
    f: F,
) -> ClosureWork<impl FnOnce(&dyn Fn() -> JobContext) -> Result<T, JoinError>>
where
    F: FnOnce(&JobContext) -> Result<T, Cancelled>,
{
    warn_of_unpolled_future::<T>();
    ClosureWork(move |context: &dyn Fn() -> JobContext| f(&context()).map_err(JoinError::from))
}

impl<F, T> Work for ClosureWork<F>
where
    F: FnOnce(&dyn Fn() -> JobContext) -> Result<T, JoinError> + Send + 'static,
    T: Send + 'static,
{
    type Output = T;
    type Link = ();

    fn step<S: Schedule>(
        job: &Arc<Job<Self, S>>,
        slot: &mut Slot<T, Self>,
        _: &mut Context<'_>,
    ) -> Poll<()> {
        // A closure cannot yield. If it has used up Tokio's budget of this poll and then
        // blocks on a Tokio resource, it would never get it.
        let mut call = || {
            let Self(closure) = slot.take_work().expect("a closure has one step");
            *slot = Slot::Output(closure(&|| JobContext { job: job.clone() }));
        };
        // As one type, so that Tokio's budget is not compiled once more for each closure.
        let call: &mut dyn FnMut() = &mut call;
        budget::without(call)
    }
}

/// Its box hides the future's type: all futures of one output share the code of their job.
pub(crate) struct FutureWork<T>(Pin<Box<dyn Future<Output = T> + Send>>);

impl<T> FutureWork<T> {
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Box::pin(future))
    }
}

impl<T: Send + 'static> Work for FutureWork<T> {
    type Output = T;
    type Link = Link;
    const IS_CLOSURE: bool = false;

    fn step<S: Schedule>(
        _: &Arc<Job<Self, S>>,
        slot: &mut Slot<T, Self>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let Slot::Work(Self(future)) = slot else {
            unreachable!("a future stays where it is until it is ready");
        };
        let (polled, has_used_up_budget) = budget::poll(future.as_mut(), cx);
        if has_used_up_budget {
            // It has yielded. Tokio wakes its own task only when its worker has run out of
            // tasks: wake the job now, so that it goes behind the jobs that are there.
            worker::set_yielded();
            cx.waker().wake_by_ref();
        }
        polled.map(|output| {
            // Drop the future before publishing the output, as Tokio does, so that an awaiter
            // never observes it alive.
            call_logged(JOB_DESTRUCTOR, || drop(slot.take_work()));
            *slot = Slot::Output(Ok(output));
        })
    }

    fn link(link: &Link) -> Option<&Link> {
        Some(link)
    }

    fn waker<S: Schedule>(job: &Arc<Job<Self, S>>) -> Option<WakerRef<'_>> {
        Some(waker_ref(job))
    }
}

/// What the lane and its pool keep for a future while it is suspended.
#[derive(Default)]
pub(crate) struct Link {
    /// The job's [`RegistryKey`](super::RegistryKey), or 0 if the job is not
    /// registered. Only the thread that runs or discards the job writes it.
    pub(super) registry_key: AtomicUsize,
    /// A step has polled in the CPU lane's own context. The runner writes it, before it suspends the job.
    pub(super) in_cpu_context: AtomicBool,
}

/// Warns, once, of a closure that returns a closure or an `async` block.
///
/// The type name of an `async` block is that of a closure. A job with such an output
/// has almost certainly computed nothing.
fn warn_of_unpolled_future<T>() {
    let name = std::any::type_name::<T>();
    if name.ends_with("{{closure}}") || name.ends_with("{async_block}") {
        crate::trace::warn_of_unpolled_output(name);
    }
}

/// The optional parts of a job: a span, a permit of a limited queue, a deadline.
///
/// They are in a box of their own: most jobs of most programs have none of them, and a
/// queued job should be small.
#[derive(Default)]
pub(crate) struct Extras(Option<Box<Inner>>);

#[derive(Default)]
struct Inner {
    origin: Option<Origin>,
    deadline: Option<Instant>,
    /// On a level with limits.
    charge: Option<Charge>,
    clock: HeldClock,
}

#[inline]
pub(crate) fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| deadline <= Instant::now())
}

impl From<Option<Charge>> for Extras {
    fn from(charge: Option<Charge>) -> Self {
        let inner = |charge| Inner {
            charge: Some(charge),
            ..Inner::default()
        };
        Self(charge.map(|charge| Box::new(inner(charge))))
    }
}

impl Extras {
    /// For a job that this thread submits now.
    #[inline]
    pub(crate) fn complete(&mut self, deadline: Option<Instant>) {
        let origin = Origin::capture();
        if origin.is_some() || deadline.is_some() {
            let inner = self.0.get_or_insert_default();
            (inner.origin, inner.deadline) = (origin, deadline);
        }
    }

    /// Runs `f` in the span and with the subscriber of the submitter.
    #[inline]
    pub(crate) fn in_scope<R>(&self, f: impl FnOnce() -> R) -> R {
        let origin = self.0.as_ref().and_then(|inner| inner.origin.as_ref());
        trace::in_scope(origin, f)
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.as_ref().and_then(|inner| inner.deadline)
    }

    /// Call once the captures are dropped. A runner calls it before the awaiter is told.
    pub(crate) fn release_permit(&self) {
        self.charge().into_iter().for_each(Charge::release);
    }

    #[inline]
    pub(crate) fn charge(&self) -> Option<&Charge> {
        self.0.as_ref()?.charge.as_ref()
    }

    pub(super) fn held_clock(&self) -> Option<&Handle> {
        self.0.as_ref()?.clock.io.as_ref()
    }

    pub(crate) fn hold_clock_of(&mut self, io: Option<Handle>) {
        self.0.get_or_insert_default().clock.io = io;
        self.hold_clock();
    }

    /// Call whenever the job is queued.
    #[inline]
    pub(crate) fn hold_clock(&self) {
        if let Some(inner) = &self.0 {
            inner.clock.hold();
        }
    }

    #[inline]
    pub(crate) fn take_clock(&self) -> Option<ClockHold> {
        self.0.as_ref().and_then(|inner| inner.clock.take())
    }
}
