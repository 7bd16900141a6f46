//! How many workers drain the queue, and who wakes one more.
//!
//! A ticket is the right of one worker to drain. It is counted from its issue
//! until the worker that uses it gives it back. One that is on its way, or
//! whose worker looks for a job, is *searching* besides. A worker that finds
//! nothing to do, and is the only one with a ticket, may keep it and *park*.
//!
//! - **A pusher** wakes the parked worker. If none is parked it issues a ticket,
//!   but only if none is searching and not all workers are drainers: it pays
//!   for a wake-up when a thread is needed that sleeps, and not for each job.
//! - **A searcher that finds a job** stops searching, and if more is queued it
//!   issues the next ticket: the workers wake one another, while the submitter has
//!   long gone on.
//!
//! No job is left without a drainer. A pusher pushes, then looks at the word; a
//! searcher that stops, with a job or without, and a worker that parks or gives its
//! ticket back, changes the word, then looks at the queue. Each has a `SeqCst`
//! fence in between, so one of the two sees the other. A pusher that finds a
//! searcher may rely on that one's look. (Loom models in `tests/loom`.)
//!
//! Orderings: all accesses to the word are `SeqCst`, since what is relied upon is
//! one order of the word's changes and the queue's.

use crate::sync::{AtomicUsize, Ordering::SeqCst, fence};

/// Issued tickets in the lower half of the word, searchers above.
const ACTIVE: usize = 1;
const SEARCHING: usize = 1 << (usize::BITS / 2);
/// There is one ticket, and its worker is parked: its number is in the lower
/// half instead of the count.
const PARKED: usize = 1 << (usize::BITS - 1);

/// What a pusher has to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wakeup {
    Nothing,
    /// Spawn a ticket; it is searching.
    Spawn,
    /// Unpark this worker; it is searching.
    Unpark(usize),
}

pub(crate) struct Idle {
    word: AtomicUsize,
    workers: usize,
}

impl Idle {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            word: AtomicUsize::new(0),
            workers,
        }
    }

    fn swap(&self, from: usize, to: usize) -> Result<usize, usize> {
        self.word.compare_exchange(from, to, SeqCst, SeqCst)
    }

    /// After a push and a fence.
    pub(crate) fn notify(&self) -> Wakeup {
        let mut word = self.word.load(SeqCst);
        loop {
            let (to, notify) = if word & PARKED != 0 {
                (ACTIVE + SEARCHING, Wakeup::Unpark(word & !PARKED))
            } else if word < SEARCHING && word < self.workers * ACTIVE {
                (word + ACTIVE + SEARCHING, Wakeup::Spawn)
            } else {
                return Wakeup::Nothing;
            };
            match self.swap(word, to) {
                Ok(_) => return notify,
                Err(now) => word = now,
            }
        }
    }

    /// The worker's own: another one has unparked it, if it is not.
    pub(crate) fn is_parked(&self) -> bool {
        self.word.load(SeqCst) & PARKED != 0
    }

    /// A hint.
    pub(crate) fn has_searcher(&self) -> bool {
        let word = self.word.load(SeqCst);
        word & PARKED == 0 && word >= SEARCHING
    }

    /// A searcher has taken a job, or turns to something else. The answer is for
    /// another worker.
    pub(crate) fn found(&self, is_empty: impl FnOnce() -> bool) -> Wakeup {
        self.lower(SEARCHING);
        if is_empty() {
            Wakeup::Nothing
        } else {
            self.notify()
        }
    }

    /// A drainer found the queue empty. True if it may search, as the only one.
    pub(crate) fn try_search(&self) -> bool {
        let word = self.word.load(SeqCst);
        word < SEARCHING && self.swap(word, word + SEARCHING).is_ok()
    }

    /// A drainer has nothing to do. True if it may park now, as `worker`. Else
    /// it is as it was; or searching, if `shall_stay` says so afterwards.
    pub(crate) fn try_park(
        &self,
        worker: usize,
        searching: &mut bool,
        shall_stay: impl FnOnce() -> bool,
    ) -> bool {
        let alone = if *searching {
            ACTIVE + SEARCHING
        } else {
            ACTIVE
        };
        if self.swap(alone, PARKED | worker).is_err() {
            return false;
        }
        fence(SeqCst);
        if shall_stay() {
            // Or somebody has unparked it just now, which is the same.
            let _ = self.unpark(worker);
            *searching = true;
            return false;
        }
        true
    }

    /// The parked worker's own, or somebody's who needs it elsewhere. False if
    /// another was first.
    pub(crate) fn unpark(&self, worker: usize) -> bool {
        self.swap(PARKED | worker, ACTIVE + SEARCHING).is_ok()
    }

    /// Whom to unpark, for one who needs the parked worker elsewhere.
    pub(crate) fn unpark_any(&self) -> Option<usize> {
        let worker = self.word.load(SeqCst) & !PARKED;
        self.unpark(worker).then_some(worker)
    }

    /// A worker gives its ticket back, unless a job came meanwhile that no other is
    /// sure to come for: a ticket that is to be spawned is then the caller's to use
    /// or to pass on.
    pub(crate) fn deactivate(&self, searching: bool, is_empty: impl FnOnce() -> bool) -> Wakeup {
        self.lower(if searching {
            ACTIVE + SEARCHING
        } else {
            ACTIVE
        });
        if is_empty() {
            Wakeup::Nothing
        } else {
            self.notify()
        }
    }

    fn lower(&self, by: usize) {
        self.word.fetch_sub(by, SeqCst);
        fence(SeqCst);
    }
}
