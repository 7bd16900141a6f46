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
use crate::sync::{AtomicU8, AtomicWaker, Mutex, MutexGuard, Ordering::SeqCst};

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

const AWAITED: u8 = 0;
const DROPPED: u8 = 1;
const DETACHED: u8 = 2;
const TOLD: u8 = 3;

pub(crate) struct Completion<T> {
    pub(crate) state: State,
    awaiter: AtomicWaker,
    /// Whether anybody will ask for the output.
    interest: AtomicU8,
    output: Mutex<Option<Result<T, JoinError>>>,
}

impl<T> Completion<T> {
    pub(crate) fn new(state: State) -> Self {
        Self {
            state,
            awaiter: AtomicWaker::new(),
            interest: AtomicU8::new(AWAITED),
            output: Mutex::new(None),
        }
    }

    /// Of a job that was never taken on.
    pub(crate) fn refused(cause: Cause) -> Self {
        let completion = Self::new(State::refused(cause));
        completion.closed(cause);
        completion
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
        // `abandon` notes it and then claims; this finishes and then looks at
        // the note: one of the two gets the output.
        if self.interest.load(SeqCst) != AWAITED && self.state.claim() == Claim::Output {
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

    /// The task was dropped: the output, now or later, is nobody's.
    pub(crate) fn abandon(&self) {
        self.lose_interest(DROPPED);
    }

    /// The same for one that was detached. True if the job is lost: see
    /// [`closed`](Self::closed).
    pub(crate) fn detach(&self) -> bool {
        let told = self.lose_interest(DETACHED) == TOLD;
        told && self.state.claim() != Claim::Closed(Cause::Cancelled)
    }

    fn lose_interest(&self, how: u8) -> u8 {
        let before = self.interest.swap(how, SeqCst);
        drop(self.awaiter.take());
        if self.state.claim() == Claim::Output {
            self.drop_output();
        }
        before
    }

    /// The job was closed: tells the awaiting side that there will be no
    /// output. True if it was detached, and not cancelled: so it is lost, and
    /// nobody knows. (If it is detached just now, the second of the two calls
    /// says so.)
    pub(crate) fn closed(&self, cause: Cause) -> bool {
        self.wake_awaiter();
        let detached = self.interest.swap(TOLD, SeqCst) == DETACHED;
        detached && cause != Cause::Cancelled
    }

    fn put(&self, output: Result<T, JoinError>) {
        *self.lock() = Some(output);
    }

    fn take(&self) -> Option<Result<T, JoinError>> {
        self.lock().take()
    }

    fn drop_output(&self) {
        match self.take() {
            Some(Err(error)) => error.report_unread(),
            output => drop_quietly("the destructor of an unread output", output),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Result<T, JoinError>>> {
        self.output
            .try_lock()
            .expect("the state gives the output to one thread at a time")
    }
}
