//! How many workers take the chunks of a stream. (The protocol is that of `Backend::Runtime`'s
//! drain tasks, in `twolane-core`, and so is its model in `tests/loom`.)
//!
//! A worker is *live* from its spawn until it finds no chunk. The pump
//! pushes a chunk, and spawns a worker if fewer than `most` are live. If `most` are
//! live, each of them looks at the queue again after its step, so none is needed.
//!
//! No chunk is left. The pump pushes and then reads the count. A worker that found
//! the queue empty lowers the count and then looks at the queue again. Each has a
//! `SeqCst` fence in between, so one of the two sees the other.

use crate::sync::{AtomicUsize, Ordering::SeqCst, fence};

pub(super) struct Workers {
    live: AtomicUsize,
    pub(super) most: usize,
}

impl Workers {
    pub(super) fn new(most: usize) -> Self {
        Self {
            live: AtomicUsize::new(0),
            most,
        }
    }

    pub(super) fn live(&self) -> usize {
        self.live.load(SeqCst)
    }

    /// Call after a push and a fence. True if the caller must spawn a worker.
    #[must_use]
    pub(super) fn try_add(&self) -> bool {
        let one_more = |live| (live < self.most).then_some(live + 1);
        self.live.fetch_update(SeqCst, SeqCst, one_more).is_ok()
    }

    /// A worker has found no chunk. False if it must go on.
    #[must_use]
    pub(super) fn try_end(&self, is_empty: impl FnOnce() -> bool) -> bool {
        self.live.fetch_sub(1, SeqCst);
        fence(SeqCst);
        is_empty() || !self.try_add()
    }
}
