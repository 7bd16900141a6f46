//! The hand-back: where a job leaves its output and who is told.
//!
//! The mutex is a safe stand-in for an `UnsafeCell`: the [`State`] says who may
//! touch the output, so the lock is never contended and nobody can be made to
//! wait for a preempted thread that holds it. That matters once the lane's
//! threads run at a lower OS priority than the one that awaits.

use std::task::{Context, Poll};

use super::state::{Cause, Claim, State};
use crate::error::JoinError;
use crate::panics::drop_quietly;
use crate::sync::{AtomicBool, AtomicWaker, Mutex, MutexGuard, Ordering::SeqCst};

impl From<Cause> for JoinError {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Cancelled => Self::cancelled(),
            Cause::ShutDown => Self::shut_down(),
            Cause::IoRuntimeGone => Self::io_runtime_gone(),
            Cause::NoThreads => Self::no_threads(),
        }
    }
}

pub(crate) struct Completion<T> {
    pub(crate) state: State,
    awaiter: AtomicWaker,
    /// Nobody will ask for the output.
    abandoned: AtomicBool,
    output: Mutex<Option<Result<T, JoinError>>>,
}

impl<T> Completion<T> {
    pub(crate) fn new(state: State) -> Self {
        Self {
            state,
            awaiter: AtomicWaker::new(),
            abandoned: AtomicBool::new(false),
            output: Mutex::new(None),
        }
    }

    /// The runner's: leaves the output and tells the awaiting side.
    pub(crate) fn finish(&self, output: Result<T, JoinError>) {
        self.put(output);
        self.state.finish();
        self.settle();
    }

    /// As [`finish`](Self::finish) where somebody may have closed the job from
    /// outside while it ran: the output is dropped then.
    pub(crate) fn try_finish(&self, output: Result<T, JoinError>) {
        self.put(output);
        if self.state.try_finish() {
            self.settle();
        } else {
            self.drop_output();
        }
    }

    fn settle(&self) {
        self.wake_awaiter();
        // `abandon` sets the flag and then claims; this finishes and then
        // looks at the flag: one of the two gets the output.
        if self.abandoned.load(SeqCst) && self.state.claim() == Claim::Output {
            self.drop_output();
        }
    }

    /// Tells the awaiting side that the job has ended. A waker is foreign
    /// code: what it panics with is logged.
    pub(crate) fn wake_awaiter(&self) {
        if let Some(waker) = self.awaiter.take() {
            crate::panics::run_hook("the waker of a task's awaiter", || waker.wake());
        }
    }

    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        // Registered first and looked at second, so that no end falls between.
        if let Some(output) = self.claim() {
            return Poll::Ready(output);
        }
        self.awaiter.register(cx.waker());
        match self.claim() {
            Some(output) => Poll::Ready(output),
            None => Poll::Pending,
        }
    }

    fn claim(&self) -> Option<Result<T, JoinError>> {
        match self.state.claim() {
            Claim::NotYet => None,
            Claim::Output => Some(self.take().expect("a finished job has left its output")),
            Claim::Closed(cause) => Some(Err(cause.into())),
            Claim::Gone => panic!("a `Task` was polled after it had returned its output"),
        }
    }

    /// The awaiting side goes away: the output, now or later, is nobody's.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, SeqCst);
        drop(self.awaiter.take());
        if self.state.claim() == Claim::Output {
            self.drop_output();
        }
    }

    fn put(&self, output: Result<T, JoinError>) {
        *self.lock() = Some(output);
    }

    fn take(&self) -> Option<Result<T, JoinError>> {
        self.lock().take()
    }

    fn drop_output(&self) {
        drop_quietly("the destructor of an unread output", self.take());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Result<T, JoinError>>> {
        self.output
            .try_lock()
            .expect("the state gives the output to one thread at a time")
    }
}
