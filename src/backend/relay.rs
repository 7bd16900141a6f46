//! Which tasks of the dedicated runtime come for the lane's jobs.
//!
//! A *fetcher* is a task that takes jobs out of the lane's queue and runs them,
//! for a turn. Between its turns it *waits* in Tokio's own queues, as does one
//! that was spawned just now.
//!
//! As long as some wait, nobody else need be told of a job: they look at the
//! queue when they have their turn, and if there is more than one takes, another
//! must wait before it runs what it took. So there are as many fetchers as there
//! are threads that run jobs, and some more; also where a job blocks in place and
//! Tokio has brought another thread for it. (And beside them those that hold a
//! job which waits.)
//!
//! One that waits would be enough, if Tokio always brought it to an idle thread.
//! But a task is not told to a worker that is about to sleep, and it does not look
//! once more, if another one was searching; so the task may rest in the queue of a
//! worker that computes. The next that is spawned then wakes the sleeper, which
//! finds both. So as many may wait as the lane has threads, and each is told.
//!
//! No job is left without a fetcher. A pusher pushes, then looks how many wait; a
//! fetcher that has its turn says that it waits no more, then looks at the queue.
//! Each has a `SeqCst` fence in between, so one of the two sees the other. (Loom
//! model in `tests/loom`.)

use crate::sync::{AtomicUsize, Ordering::SeqCst, fence, fence_of_loom};

pub(crate) struct Relay {
    waiting: AtomicUsize,
    enough: usize,
}

impl Relay {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            enough: threads,
        }
    }

    /// There is a job: after a push and a fence, or by a fetcher that has left it
    /// in the queue. True if the caller has to spawn a fetcher, which waits from
    /// now on.
    #[must_use]
    pub(crate) fn call(&self) -> bool {
        // For a fetcher: what it saw of the queue it saw with `SeqCst` accesses.
        fence_of_loom();
        let mut waiting = self.waiting.load(SeqCst);
        while waiting < self.enough {
            let one_more = waiting + 1;
            match self
                .waiting
                .compare_exchange(waiting, one_more, SeqCst, SeqCst)
            {
                Ok(_) => return true,
                Err(now) => waiting = now,
            }
        }
        false
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
