//! How many workers drain the queue, and who wakes one more.
//!
//! A ticket is the right of one worker to drain. It is counted from its issue
//! until the worker that uses it has found the queue empty and gone. One that
//! is on its way, or whose worker looks for a job, is *searching* besides.
//!
//! - **A pusher issues a ticket** (which wakes a worker, if they all sleep)
//!   only if nobody is searching and not all workers are drainers: it pays for
//!   a wake-up when a thread is needed that sleeps, and not for each job.
//! - **A searcher that finds a job** stops searching, and if more is queued it
//!   issues the next ticket: the workers wake one another, while the one who
//!   submitted has long gone on.
//!
//! No job is left without a drainer. A pusher pushes, then looks at the count;
//! a searcher that stops, with a job or without, lowers the count, then looks
//! at the queue. Each has a `SeqCst` fence in between, so one of the two sees
//! the other. One that goes without having searched leaves a searcher behind,
//! or looks at the queue as well. (Loom model in `tests/loom.rs`.)

use crate::sync::{AtomicUsize, Ordering::SeqCst, fence};

/// Issued tickets in the lower half of a word, searchers in the upper.
const ISSUED: usize = 1;
const SEARCHING: usize = 1 << (usize::BITS / 2);

pub(crate) struct Tickets {
    counts: AtomicUsize,
    workers: usize,
}

impl Tickets {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            counts: AtomicUsize::new(0),
            workers,
        }
    }

    /// After a push (and a fence): whether a ticket is to be spawned. It is
    /// searching from now on.
    pub(crate) fn try_issue(&self) -> bool {
        let mut counts = self.counts.load(SeqCst);
        while counts < SEARCHING && counts < self.workers * ISSUED {
            match self.counts.compare_exchange_weak(
                counts,
                counts + ISSUED + SEARCHING,
                SeqCst,
                SeqCst,
            ) {
                Ok(_) => return true,
                Err(now) => counts = now,
            }
        }
        false
    }

    /// A searcher has taken a job. True if another ticket is to be spawned.
    pub(crate) fn found(&self, is_empty: impl FnOnce() -> bool) -> bool {
        self.lower(SEARCHING);
        !is_empty() && self.try_issue()
    }

    /// A drainer found the queue empty. True if it may search, as the only one.
    pub(crate) fn try_search(&self) -> bool {
        let counts = self.counts.load(SeqCst);
        let search = |counts| {
            self.counts
                .compare_exchange(counts, counts + SEARCHING, SeqCst, SeqCst)
        };
        counts < SEARCHING && search(counts).is_ok()
    }

    /// A drainer that searches, or may not search, goes. False if a job came
    /// meanwhile that nobody else is sure to come for: then it has a ticket
    /// again, and searches.
    pub(crate) fn retire(&self, searching: bool, is_empty: impl FnOnce() -> bool) -> bool {
        self.lower(if searching {
            ISSUED + SEARCHING
        } else {
            ISSUED
        });
        is_empty() || !self.try_issue()
    }

    /// A ticket came to a thread that can't use it and will be spawned again:
    /// nobody shall rely on it meanwhile.
    pub(crate) fn put_off(&self) {
        self.lower(SEARCHING);
    }

    /// It is spawned again.
    pub(crate) fn resume(&self) {
        self.counts.fetch_add(SEARCHING, SeqCst);
    }

    fn lower(&self, by: usize) {
        self.counts.fetch_sub(by, SeqCst);
        fence(SeqCst);
    }
}
