//! [`WakeList`]: wakers on their way to the task of the I/O runtime that wakes them.
//!
//! A push puts a waker on the list and then sets *signalled*. If it was not set, the caller
//! signals. The task that was signalled clears *signalled* and then takes all wakers. Both are
//! read-modify-writes of one word, so one comes first: either the task sees the waker, or the
//! push finds the word clear and signals again.
//!
//! When the task ends, it sets *ended* and takes all wakers. A push that finds it set comes too
//! late for that: its caller takes the wakers itself. (The loom model is in `tests/loom`.)

use std::task::Waker;

use crate::sync::{AtomicU8, Ordering::AcqRel, Queue};

const SIGNALLED: u8 = 1;
const ENDED: u8 = 2;

/// What the caller of a push has to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    Nothing,
    /// Signal the task.
    Signal,
    /// The task has ended: take the wakers.
    Take,
}

pub(crate) struct WakeList {
    wakers: Queue<Waker>,
    state: AtomicU8,
}

impl WakeList {
    pub(crate) fn new() -> Self {
        Self {
            wakers: Queue::new(),
            state: AtomicU8::new(0),
        }
    }

    #[must_use]
    pub(crate) fn push(&self, waker: Waker) -> Pushed {
        self.wakers.push(waker);
        match self.state.fetch_or(SIGNALLED, AcqRel) {
            0 => Pushed::Signal,
            SIGNALLED => Pushed::Nothing,
            _ => Pushed::Take,
        }
    }

    /// The task was signalled. It takes the wakers then.
    pub(crate) fn was_signalled(&self) {
        self.state.fetch_and(!SIGNALLED, AcqRel);
    }

    /// The task ends. It takes the wakers then.
    pub(crate) fn end(&self) {
        self.state.fetch_or(ENDED, AcqRel);
    }

    pub(crate) fn pop(&self) -> Option<Waker> {
        self.wakers.pop()
    }
}
