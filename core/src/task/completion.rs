//! The completion of a job: where the runner leaves the output, and how it notifies the
//! awaiter.
//!
//! The mutex around the slot is a safe stand-in for an `UnsafeCell`. The [`State`]
//! gives the slot to one thread at a time, so the lock is never contended, and no
//! thread has to wait for a preempted thread that holds it. That matters when the
//! lane's threads have a higher nice value than the awaiter's thread.

use std::mem;
use std::task::{Context, Poll, Waker};

use super::state::{JoinInterest, Progress, State};
use crate::error::{CloseReason, JoinError};
use crate::panics::{self, drop_quietly};
use crate::sync::{AtomicWaker, Mutex, MutexGuard};

/// The memory of a job: first its work, then its output.
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

/// `W` is the work that computes the output `T`.
pub(crate) struct Completion<T, W> {
    pub(crate) state: State,
    /// When the job was queued, for its level's histograms; else 0. Only the thread that queues
    /// the job or runs it touches it.
    pub(crate) queued_at: std::sync::atomic::AtomicU64,
    awaiter: AtomicWaker,
    slot: Mutex<Slot<T, W>>,
}

impl<T, W> Completion<T, W> {
    pub(crate) fn new(state: State, slot: Slot<T, W>) -> Self {
        Self {
            state,
            queued_at: std::sync::atomic::AtomicU64::new(0),
            awaiter: AtomicWaker::new(),
            slot: Mutex::new(slot),
        }
    }

    /// For the thread to which the state gives the slot.
    pub(crate) fn slot(&self) -> MutexGuard<'_, Slot<T, W>> {
        self.try_slot()
            .expect("the state gives the slot to one thread at a time")
    }

    /// For threads that may come at the same time. One gets the slot and does what is
    /// to do; the others get `None`.
    pub(crate) fn try_slot(&self) -> Option<MutexGuard<'_, Slot<T, W>>> {
        self.slot.try_lock().ok()
    }

    /// The runner calls it; the output is in the slot. It wakes the awaiter.
    /// Returns whether the job is lost; see [`closed`](Self::closed).
    #[must_use]
    pub(crate) fn finish(&self) -> bool {
        let interest = self.state.finish();
        if interest.is_dropped() {
            return self.drop_output() && interest.is_detached();
        }
        wake(self.waker(interest));
        false
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
                    // The thread that ended the job did not see the waker.
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

    /// The task was dropped. Drops the output, or makes the runner drop it later.
    pub(crate) fn drop_join_handle(&self) {
        let _is_lost = self.set_join_dropped(false);
    }

    /// The task was detached: the same. Returns whether the job is lost; see
    /// [`closed`](Self::closed).
    pub(crate) fn detach(&self) -> bool {
        self.set_join_dropped(true)
    }

    /// Returns whether the job has ended without its output, and not at its own request.
    fn set_join_dropped(&self, detached: bool) -> bool {
        let (progress, interest) = self.state.set_join_dropped(detached);
        if interest.has_waker() {
            drop(self.awaiter.take());
        }
        match progress {
            Progress::NotYet => false,
            Progress::Finished => self.drop_output(),
            Progress::Closed(cause) => !cause.is_requested(),
        }
    }

    /// The job was closed: wakes the awaiter. Returns whether the job is lost: it was
    /// detached and its end was not requested, so no awaiter learns of it. (If it is
    /// detached later, [`detach`](Self::detach) returns this instead.)
    pub(crate) fn closed(&self, cause: CloseReason, interest: JoinInterest) -> bool {
        wake(self.waker(interest));
        interest.is_detached() && !cause.is_requested()
    }

    /// Returns whether it was the error of a job that was closed, and not at its own request.
    fn drop_output(&self) -> bool {
        // Drop the output after the lock is released.
        let output = self.slot().take_output();
        match output {
            Some(Err(error)) => {
                error.report_unread();
                error
                    .close_reason()
                    .is_some_and(|cause| !cause.is_requested())
            }
            output => {
                drop_quietly("the destructor of an unread output", output);
                false
            }
        }
    }
}

fn wake(awaiter: Option<Waker>) {
    if let Some(awaiter) = awaiter {
        panics::wake(awaiter);
    }
}
