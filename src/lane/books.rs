//! The books of one priority: how many jobs came, and what became of them.
//!
//! Only counts that grow are kept, each by whoever makes the step that it counts:
//! submitted, begun, rested, woken, finished, closed. What is there at this
//! moment is told by their differences. A step is counted when it can be relied
//! upon by nobody else yet: a rest and an end are counted before the job's state
//! says so, a submission and a wake before the job is queued. So once nothing is on
//! its way they are exact: whoever has awaited a task finds it in the books. A
//! reader that comes in between takes what is subtracted first, so that it finds
//! rather too many than too few; none is below zero.
//!
//! (A wake and a close are counted after they were won, by the one who won them:
//! another one who looks at that task in the very moment may know of it before the
//! books do.)
//!
//! A worker writes a page of its own, with plain stores: no two write the same
//! cache line, and none waits for one. All others add, on one of a few pages, by
//! thread.

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};

use crossbeam_utils::CachePadded;

use crate::context;
use crate::job::state::Cause;

/// More than most machines have I/O workers.
const SHARDS: usize = 16;

pub(crate) struct Books {
    /// By worker. The last is for threads that are not workers of their own
    /// number: Tokio makes some where a job blocks in place.
    workers: Box<[CachePadded<Page>]>,
    others: [CachePadded<Shard>; SHARDS],
}

/// Of what happens in a step of a job.
#[derive(Default)]
struct Page {
    /// In a step, or dropping what a job left behind.
    busy: AtomicUsize,
    begun: AtomicU64,
    rested: AtomicU64,
    woken: AtomicU64,
    completed: AtomicU64,
    panicked: AtomicU64,
}

/// Of what any thread may do.
#[derive(Default)]
struct Shard {
    submitted: AtomicU64,
    rejected: AtomicU64,
    woken: AtomicU64,
    cancelled: AtomicU64,
    expired: AtomicU64,
    dropped: AtomicU64,
    /// The last three by where they were.
    closed_queued: AtomicU64,
    closed_suspended: AtomicU64,
}

/// What a reader of the books finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) submitted: u64,
    pub(crate) rejected: u64,
    pub(crate) completed: u64,
    pub(crate) panicked: u64,
    pub(crate) cancelled: u64,
    pub(crate) expired: u64,
    pub(crate) dropped: u64,
    pub(crate) queued: u64,
    pub(crate) running: u64,
    pub(crate) suspended: u64,
}

/// What the thread that runs a job tells of it.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    Begun,
    /// It is about to rest.
    Rested,
    /// It was woken before it could.
    Woken,
    Completed,
    Panicked,
}

impl Books {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            workers: (0..=workers).map(|_| CachePadded::default()).collect(),
            others: Default::default(),
        }
    }

    /// The calling worker's page, or the last one, which is everybody's.
    fn page(&self) -> (&Page, bool) {
        let last = self.workers.len() - 1;
        match context::worker_index() {
            Some(worker) if worker < last => (&self.workers[worker], true),
            _ => (&self.workers[last], false),
        }
    }

    /// Only for a thread of the level that is in [`busy`](Self::busy).
    pub(crate) fn note(&self, step: Step) {
        let (page, is_own) = self.page();
        let count = match step {
            Step::Begun => &page.begun,
            Step::Rested => &page.rested,
            Step::Woken => &page.woken,
            Step::Completed => &page.completed,
            Step::Panicked => &page.panicked,
        };
        if is_own {
            count.store(count.load(Relaxed) + 1, Release);
        } else {
            count.fetch_add(1, Release);
        }
    }

    /// The thread counts as busy while `step` runs, which does not unwind.
    pub(super) fn busy<R>(&self, step: impl FnOnce() -> R) -> R {
        let (page, is_own) = self.page();
        if is_own {
            let before = page.busy.load(Relaxed);
            page.busy.store(before + 1, Release);
            let result = step();
            page.busy.store(before, Release);
            result
        } else {
            page.busy.fetch_add(1, Release);
            let result = step();
            page.busy.fetch_sub(1, Release);
            result
        }
    }

    pub(super) fn busy_threads(&self) -> usize {
        let busy = self.workers.iter().map(|page| page.busy.load(Acquire));
        busy.sum()
    }

    fn shard(&self) -> &Shard {
        thread_local! {
            static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
        }
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let mine = MINE.try_with(|mine| {
            if mine.get() == usize::MAX {
                mine.set(NEXT.fetch_add(1, Relaxed) % SHARDS);
            }
            mine.get()
        });
        // A destructor that runs while its thread ends may submit, too.
        &self.others[mine.unwrap_or(0)]
    }

    pub(crate) fn note_submitted(&self) {
        self.shard().submitted.fetch_add(1, Release);
    }

    pub(crate) fn note_rejected(&self) {
        self.shard().rejected.fetch_add(1, Release);
    }

    /// A suspended job was woken, and is about to be queued.
    pub(crate) fn note_woken(&self) {
        self.shard().woken.fetch_add(1, Release);
    }

    pub(crate) fn note_closed(&self, cause: Cause, was_suspended: bool) {
        let shard = self.shard();
        let cause = match cause {
            Cause::Cancelled => &shard.cancelled,
            Cause::Expired => &shard.expired,
            _ => &shard.dropped,
        };
        let place = if was_suspended {
            &shard.closed_suspended
        } else {
            &shard.closed_queued
        };
        cause.fetch_add(1, Release);
        place.fetch_add(1, Release);
    }

    pub(crate) fn read(&self) -> Counts {
        let of_pages = |count: fn(&Page) -> &AtomicU64| -> u64 {
            self.workers
                .iter()
                .map(|page| count(page).load(Acquire))
                .sum()
        };
        let of_shards = |count: fn(&Shard) -> &AtomicU64| -> u64 {
            self.others
                .iter()
                .map(|shard| count(shard).load(Acquire))
                .sum()
        };
        let woken = || of_pages(|page| &page.woken) + of_shards(|shard| &shard.woken);
        // Whatever is subtracted from another is read before that.
        let cancelled = of_shards(|shard| &shard.cancelled);
        let expired = of_shards(|shard| &shard.expired);
        let dropped = of_shards(|shard| &shard.dropped);
        let closed_queued = of_shards(|shard| &shard.closed_queued);
        let no_longer_suspended = woken() + of_shards(|shard| &shard.closed_suspended);
        let completed = of_pages(|page| &page.completed);
        let panicked = of_pages(|page| &page.panicked);
        let rested = of_pages(|page| &page.rested);
        let begun = of_pages(|page| &page.begun);
        let became_queued = woken();
        let submitted = of_shards(|shard| &shard.submitted);
        Counts {
            submitted,
            rejected: of_shards(|shard| &shard.rejected),
            completed,
            panicked,
            cancelled,
            expired,
            dropped,
            queued: (submitted + became_queued).saturating_sub(begun + closed_queued),
            running: begun.saturating_sub(completed + panicked + rested),
            suspended: rested.saturating_sub(no_longer_suspended),
        }
    }
}
