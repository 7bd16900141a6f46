//! [`Workers`]: how many jobs drain a stream's queue of chunks.
//!
//! A worker is *live* from its submission until it finds the queue empty. The pump pushes a chunk, and
//! submits a worker if fewer than `most` are live. If `most` are live, each of them looks at the queue
//! again after its chunk, so none is needed.
//!
//! No chunk is left. The pump pushes and then reads the count. A worker that found the queue empty
//! lowers the count and then looks at the queue again. Each has a `SeqCst` fence in between, so one of
//! the two sees the other.
//!
//! **Obligations.** [safety] At most `most` are live. [liveness] While a chunk is queued, one is live.

use crate::sync::{AtomicUsize, Ordering::SeqCst, fence};

/// How many workers drain a queue.
#[derive(Debug)]
pub(super) struct Workers {
    live: AtomicUsize,
    most: usize,
}

impl Workers {
    /// None is live; so many may be.
    pub(super) fn new(most: usize) -> Self {
        let live = AtomicUsize::new(0);
        Self { live, most }
    }

    /// How many may be live.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// How many are live; a hint.
    pub(super) fn live(&self) -> usize {
        self.live.load(SeqCst)
    }

    /// Call after a push and a fence. True if the caller must submit a worker.
    #[inline]
    #[must_use]
    pub(super) fn try_add(&self) -> bool {
        let one_more = |live| (live < self.most).then_some(live + 1);
        self.live.fetch_update(SeqCst, SeqCst, one_more).is_ok()
    }

    /// A worker has found the queue empty. False if it must go on.
    #[must_use]
    pub(super) fn try_end(&self, is_empty: impl FnOnce() -> bool) -> bool {
        self.live.fetch_sub(1, SeqCst);
        fence(SeqCst);
        is_empty() || !self.try_add()
    }
}
