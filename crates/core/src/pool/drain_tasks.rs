//! How many tasks drain a queue: the drain tasks of `Backend::Runtime` (see `tokio/mod.rs`), or the
//! workers of a stream, in `twolane`.
//!
//! A drain task is *live* from its spawn until it finds the queue empty. A submitter
//! pushes a job, and spawns a drain task if fewer than `most` are live. If `most` are
//! live, each of them looks at the queue again after its step, so none is needed.
//!
//! No job is left. A submitter pushes and then reads the count. A drain task that found
//! the queue empty lowers the count and then looks at the queue again. Each has a
//! `SeqCst` fence in between, so one of the two sees the other.
//!
//! **Obligations.** [safety] At most `most` are live. [liveness] While a job is queued, one is
//! live.

use crate::sync::{AtomicUsize, Ordering::SeqCst, fence};

/// How many tasks drain a queue.
#[derive(Debug)]
pub struct DrainTasks {
    live: AtomicUsize,
    most: usize,
}

impl DrainTasks {
    /// None is live; so many may be.
    pub fn new(most: usize) -> Self {
        let live = AtomicUsize::new(0);
        Self { live, most }
    }

    /// How many may be live.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Call after a push and a fence. True if the caller must spawn a drain task.
    #[inline]
    #[must_use]
    pub fn try_add(&self) -> bool {
        let one_more = |live| (live < self.most).then_some(live + 1);
        self.live.fetch_update(SeqCst, SeqCst, one_more).is_ok()
    }

    /// How many are live; a hint.
    pub fn live(&self) -> usize {
        self.live.load(SeqCst)
    }

    /// A drain task has found the queue empty. False if it must go on.
    #[must_use]
    pub fn try_end(&self, is_empty: impl FnOnce() -> bool) -> bool {
        self.live.fetch_sub(1, SeqCst);
        fence(SeqCst);
        is_empty() || !self.try_add()
    }
}
