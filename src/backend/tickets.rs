//! How many workers drain the queue, or are on their way to it.
//!
//! A ticket is counted from its issue until the worker that uses it has found
//! the queue empty. No wake-up is lost: a pusher pushes, then looks at the
//! count; a drainer lowers the count, then looks at the queue. Each has a
//! `SeqCst` fence in between, so one of the two sees the other. (Loom model in
//! `tests/loom.rs`.)

use crate::sync::{AtomicUsize, Ordering::SeqCst, fence};

pub(crate) struct Tickets {
    issued: AtomicUsize,
    workers: usize,
}

impl Tickets {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            issued: AtomicUsize::new(0),
            workers,
        }
    }

    /// After a push: whether a ticket is to be spawned.
    pub(crate) fn try_issue(&self) -> bool {
        fence(SeqCst);
        let mut issued = self.issued.load(SeqCst);
        while issued < self.workers {
            match self
                .issued
                .compare_exchange_weak(issued, issued + 1, SeqCst, SeqCst)
            {
                Ok(_) => return true,
                Err(now) => issued = now,
            }
        }
        false
    }

    fn give_back(&self) {
        self.issued.fetch_sub(1, SeqCst);
        fence(SeqCst);
    }

    /// The drainer found the queue empty. True if it may go; false if a job
    /// came meanwhile that nobody else is sure to come for.
    pub(crate) fn retire(&self, is_empty: impl FnOnce() -> bool) -> bool {
        self.give_back();
        is_empty() || !self.try_issue()
    }
}
