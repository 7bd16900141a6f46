//! [`WakeList`]: wakers on their way to the task of the I/O runtime that wakes them.
//!
//! A push puts a waker on the list, and its caller then signals the task. The signalled task takes
//! all that is there.
//!
//! **No thread waits for another one**, which may be a niced thread that has lost its core inside
//! the lock. A push that finds the list locked returns the waker, and its caller wakes it. The task
//! that finds it locked leaves it: the thread inside is a push, which signals after that, or takes
//! the wakers itself.
//!
//! When the task ends, it ends the list. A later push returns the waker. (The loom model is in
//! `tests/loom`.)

use std::mem;
use std::task::Waker;

use crate::sync::Mutex;

pub(crate) struct WakeList {
    /// `None` after the end.
    wakers: Mutex<Option<Vec<Waker>>>,
}

impl WakeList {
    pub(crate) fn new() -> Self {
        Self {
            wakers: Mutex::new(Some(Vec::new())),
        }
    }

    /// If this is no error, signal the task.
    pub(crate) fn push(&self, waker: Waker) -> Result<(), Waker> {
        let Ok(mut wakers) = self.wakers.try_lock() else {
            return Err(waker);
        };
        match &mut *wakers {
            Some(wakers) => {
                wakers.push(waker);
                Ok(())
            }
            None => Err(waker),
        }
    }

    pub(crate) fn take(&self) -> Vec<Waker> {
        match self.wakers.try_lock() {
            Ok(mut wakers) => wakers.as_mut().map(mem::take).unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }

    /// The task ends. This waits for a push that is under way.
    pub(crate) fn end(&self) -> Vec<Waker> {
        let wakers = self.wakers.lock();
        let taken = wakers.unwrap_or_else(|error| error.into_inner()).take();
        taken.unwrap_or_default()
    }
}
