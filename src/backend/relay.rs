//! Which tasks of the dedicated runtime come for the lane's jobs.
//!
//! A *fetcher* is a task that takes jobs out of the lane's queue and runs them,
//! for a turn. Between its turns it *waits* in Tokio's own queues, as does one
//! that was spawned just now.
//!
//! While one waits, no other need be told of a job: it looks at the queue when
//! it has its turn, and if there is more than it takes, another must wait before
//! it runs what it took. So there are as many fetchers as there are threads that
//! run jobs, and one more; also where a job blocks in place and Tokio has brought
//! another thread for it.
//!
//! No job is left without a fetcher. A pusher pushes, then looks whether one
//! waits; a fetcher that has its turn says that it waits no more, then looks at
//! the queue. Each has a `SeqCst` fence in between, so one of the two sees the
//! other. (Loom model in `tests/loom`.)

use crate::sync::{AtomicUsize, Ordering::SeqCst, fence, fence_of_loom};

pub(crate) struct Relay {
    waiting: AtomicUsize,
}

impl Relay {
    pub(crate) fn new() -> Self {
        Self {
            waiting: AtomicUsize::new(0),
        }
    }

    /// There is a job: after a push and a fence, or by a fetcher that has left it
    /// in the queue. True if the caller has to spawn a fetcher, which waits from
    /// now on.
    #[must_use]
    pub(crate) fn call(&self) -> bool {
        // For a fetcher: what it saw of the queue it saw with `SeqCst` accesses.
        fence_of_loom();
        self.waiting.load(SeqCst) == 0
            && self.waiting.compare_exchange(0, 1, SeqCst, SeqCst).is_ok()
    }

    /// A fetcher has its turn. It looks at the queue after this.
    pub(crate) fn begin_turn(&self) {
        self.waiting.fetch_sub(1, SeqCst);
        fence(SeqCst);
    }

    /// Its turn is over, and it will have another.
    pub(crate) fn wait(&self) {
        self.waiting.fetch_add(1, SeqCst);
    }
}
