//! The hand-back: where a job leaves its output and who is told.
//!
//! The mutex around the slot is a safe stand-in for an `UnsafeCell`: the
//! [`State`] says who may touch it, so the lock is never contended and nobody
//! can be made to wait for a preempted thread that holds it. That matters once
//! the lane's threads run at a lower OS priority than the one that awaits.

use std::convert::Infallible;
use std::mem;
use std::task::{Context, Poll, Waker};

use super::state::{JoinInterest, Progress, State};
use crate::error::{CloseReason, JoinError};
use crate::panics::{drop_quietly, run_hook};
use crate::sync::{AtomicWaker, Mutex, MutexGuard};

/// What of a job is in its memory: first its work, then its output.
pub(crate) enum Slot<T, W> {
    Work(W),
    Output(Result<T, JoinError>),
    Empty,
}

impl<T, W> Slot<T, W> {
    pub(crate) fn take_work(&mut self) -> Option<W> {
        match mem::replace(self, Self::Empty) {
            Self::Work(work) => Some(work),
            other => {
                *self = other;
                None
            }
        }
    }

    fn take_output(&mut self) -> Option<Result<T, JoinError>> {
        match mem::replace(self, Self::Empty) {
            Self::Output(output) => Some(output),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// `W`: what computes the output, where that is kept here too.
pub(crate) struct Completion<T, W = Infallible> {
    pub(crate) state: State,
    /// When the job was queued, for its level's histograms. Here, because beside
    /// the state there is room for it.
    #[cfg(feature = "metrics")]
    pub(crate) queued_at: std::sync::atomic::AtomicU64,
    awaiter: AtomicWaker,
    slot: Mutex<Slot<T, W>>,
}

impl<T, W> Completion<T, W> {
    pub(crate) fn new(state: State, slot: Slot<T, W>) -> Self {
        Self {
            state,
            #[cfg(feature = "metrics")]
            queued_at: std::sync::atomic::AtomicU64::new(0),
            awaiter: AtomicWaker::new(),
            slot: Mutex::new(slot),
        }
    }

    /// For the one to whom the state gives the slot.
    pub(crate) fn slot(&self) -> MutexGuard<'_, Slot<T, W>> {
        self.try_slot()
            .expect("the state gives the slot to one thread at a time")
    }

    /// For those who may be several, of whom one is enough.
    pub(crate) fn try_slot(&self) -> Option<MutexGuard<'_, Slot<T, W>>> {
        self.slot.try_lock().ok()
    }

    /// The runner's: the output is in the slot. Who is to be woken is the
    /// caller's to wake.
    #[must_use]
    pub(crate) fn finish(&self) -> Option<Waker> {
        self.settle(self.state.finish())
    }

    /// As [`finish`](Self::finish) where somebody may have closed the job from
    /// outside while it ran: the output is dropped then.
    pub(crate) fn try_finish(&self, output: Result<T, JoinError>) {
        *self.slot() = Slot::Output(output);
        match self.state.try_finish() {
            Some(interest) => wake(self.settle(interest)),
            None => self.drop_output(),
        }
    }

    fn settle(&self, interest: JoinInterest) -> Option<Waker> {
        if interest.is_dropped() {
            self.drop_output();
            None
        } else {
            self.waker(interest)
        }
    }

    fn waker(&self, interest: JoinInterest) -> Option<Waker> {
        interest.has_waker().then(|| self.awaiter.take()).flatten()
    }

    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        let progress = match self.state.progress() {
            Progress::NotYet => {
                self.awaiter.register(cx.waker());
                let progress = self.state.set_join_waker();
                if progress != Progress::NotYet {
                    // Who ended it did not know of the waker.
                    drop(self.awaiter.take());
                }
                progress
            }
            ended => ended,
        };
        match progress {
            Progress::NotYet => Poll::Pending,
            Progress::Finished => {
                let output = self.slot().take_output();
                Poll::Ready(output.expect("a finished job has left its output"))
            }
            Progress::Closed(cause) => Poll::Ready(Err(cause.into())),
        }
    }

    /// The task was dropped: the output, now or later, is nobody's.
    pub(crate) fn drop_join_handle(&self) {
        self.set_join_dropped(false);
    }

    /// The same for one that was detached. True if the job is lost: see
    /// [`closed`](Self::closed).
    pub(crate) fn detach(&self) -> bool {
        match self.set_join_dropped(true) {
            Progress::Closed(cause) => !cause.is_requested(),
            _ => false,
        }
    }

    fn set_join_dropped(&self, detached: bool) -> Progress {
        let (progress, interest) = self.state.set_join_dropped(detached);
        if interest.has_waker() {
            drop(self.awaiter.take());
        }
        if progress == Progress::Finished {
            self.drop_output();
        }
        progress
    }

    /// The job was closed: tells the awaiting side that there will be no
    /// output. True if it was detached, and nobody asked for its end: so it is
    /// lost, and nobody knows. (If it is detached later, that call says so.)
    pub(crate) fn closed(&self, cause: CloseReason, interest: JoinInterest) -> bool {
        wake(self.waker(interest));
        interest.is_detached() && !cause.is_requested()
    }

    fn drop_output(&self) {
        // Outside the lock.
        let output = self.slot().take_output();
        match output {
            Some(Err(error)) => error.report_unread(),
            output => drop_quietly("the destructor of an unread output", output),
        }
    }
}

impl<T> Completion<T> {
    /// Of work that is elsewhere.
    pub(crate) fn running() -> Self {
        Self::new(State::running(), Slot::Empty)
    }
}

/// Wakes an awaiting side. A waker is foreign code: what it panics with is
/// logged.
pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        run_hook("the waker of a task's awaiter", || waker.wake());
    }
}
