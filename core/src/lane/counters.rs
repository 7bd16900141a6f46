//! Counts the jobs of one priority, by what happened to them.
//!
//! There is one counter for each kind of [`Event`], and counters only grow. The numbers
//! of queued, running and suspended jobs are differences of counters.
//!
//! **When an event is counted.** A thread counts an event before other threads can rely
//! on it: a suspension and an end before the job's state shows them, a submission
//! before the job is queued. So the counters are exact when nothing is under way. An
//! awaiter that has the output finds the job counted as ended.
//!
//! Two events are counted afterwards: a wake and a close. Several threads may try these
//! on the same job. The thread that succeeds counts the event. Another thread that
//! looks at this job at that moment may see the change before the counters show it.
//!
//! **What a reader finds.** A reader that comes in between reads the subtracted
//! counters first. So it finds too many jobs rather than too few, and no difference is
//! below zero.
//!
//! **Pages.** The counters lie on pages. A worker has its own page for the events in a
//! job's step (`task/worker.rs`), and adds to it with plain stores. All other events go to one of
//! [`SHARED`] pages, which the thread's number selects. So no worker waits for a cache
//! line of another worker.
//!
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crossbeam_utils::CachePadded;

use super::ThreadSettings;
use crate::metrics::histogram::AtomicHistogram;
use crate::metrics::timings::Timings;
use crate::metrics::{Held, Metrics};
use crate::shard;
use crate::task::{Event, Page};

/// Most machines have fewer I/O workers.
const SHARED: usize = 16;

pub(crate) struct Counters {
    /// One page per worker, by its index. Then one page for lane threads without a
    /// worker index (Tokio starts such threads where a job blocks in place). Then the
    /// shared pages. Then one page per worker of `High` (`short_first.rs`).
    pages: Box<[CachePadded<Page>]>,
    workers: usize,
    pub(super) held: Held,
    pub(super) timings: Option<Box<Timings>>,
}

impl Counters {
    pub(super) fn new(settings: &ThreadSettings) -> Self {
        let (workers, timings) = (settings.threads, settings.has_histograms);
        let pages = 2 * workers + 1 + SHARED;
        Self {
            pages: (0..pages).map(|_| CachePadded::default()).collect(),
            workers,
            held: timings.then(Arc::default),
            timings: timings.then(|| Box::new(Timings::new(AtomicHistogram::fine))),
        }
    }

    /// The page for the steps of the worker of that index, and whether others share it.
    pub(super) fn page(&self, worker: Option<usize>) -> (&Page, bool) {
        let own = worker.filter(|worker| *worker < self.workers);
        (&self.pages[own.unwrap_or(self.workers)], own.is_none())
    }

    pub(super) fn count(&self, event: Event) {
        self.count_from(shard::number(), event);
    }

    /// For the thread of that number.
    pub(super) fn count_from(&self, thread: usize, event: Event) {
        self.add(self.workers + 1 + thread % SHARED, event);
    }

    /// The same for a worker of another priority.
    pub(super) fn helpers_page(&self, worker: Option<usize>) -> (&Page, bool) {
        let own = worker.filter(|worker| *worker < self.workers);
        let page = own.map(|worker| self.workers + 1 + SHARED + worker);
        (&self.pages[page.unwrap_or(self.workers)], own.is_none())
    }

    fn add(&self, page: usize, event: Event) {
        self.pages[page].add(event);
    }

    fn sum(&self, event: Event) -> u64 {
        self.pages.iter().map(|page| page.get(event)).sum()
    }

    /// Whether a job was ever submitted.
    pub(super) fn is_used(&self) -> bool {
        self.sum(Event::Submitted) > 0
    }

    /// Returns how many jobs run now. Reads the subtracted counters first.
    pub(crate) fn running(&self) -> u64 {
        let ended = [Event::Completed, Event::Panicked, Event::Suspended];
        let ended: u64 = ended.map(|event| self.sum(event)).iter().sum();
        self.sum(Event::Begun).saturating_sub(ended)
    }

    /// Reads what happens to a job later before what happens to it sooner. So it never
    /// finds an end without its submission.
    ///
    /// The figures that the caller fills in are 0.
    pub(crate) fn read(&self) -> Metrics {
        let [cancelled, expired, dropped, closed_queued] = [
            Event::Cancelled,
            Event::Expired,
            Event::Dropped,
            Event::ClosedQueued,
        ]
        .map(|event| self.sum(event));
        let no_longer_suspended = self.sum(Event::Woken) + self.sum(Event::ClosedSuspended);
        let [completed, panicked, suspended] =
            [Event::Completed, Event::Panicked, Event::Suspended].map(|event| self.sum(event));
        let begun = self.sum(Event::Begun);
        let woken = self.sum(Event::Woken);
        let submitted = self.sum(Event::Submitted);
        let timings = self.timings.as_deref();
        Metrics {
            submitted,
            rejected: self.sum(Event::Rejected),
            completed,
            panicked,
            cancelled,
            expired,
            dropped,
            queued: (submitted + woken).saturating_sub(begun + closed_queued),
            running: begun.saturating_sub(completed + panicked + suspended),
            suspended: suspended.saturating_sub(no_longer_suspended),
            threads: 0,
            queue_limit: None,
            permits_in_use: 0,
            tokio_tasks: 0,
            queue_wait: timings.map(|of| of.waits.read()).unwrap_or_default(),
            run_time: timings.map(|of| of.steps.read()).unwrap_or_default(),
            bridge_bytes: self
                .held
                .as_ref()
                .map_or(0, |held| held.load(Relaxed) as u64),
        }
    }
}
