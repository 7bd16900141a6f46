//! How many jobs of one priority came, and what became of them.
//!
//! Only counters that grow are kept, one for each kind of [`Event`]; how many jobs
//! are queued, running and suspended is a difference of these. An event is counted
//! before others can rely on it: a rest and an end before the job's state says so,
//! a submission before the job is queued. So once nothing is under way they are
//! exact: an awaiter that has the output finds the job in the counters. A reader
//! that comes in between reads what is subtracted first, so that it finds rather
//! too many than too few; no difference is below zero.
//!
//! (A wake and a close are counted after they were won, by the thread that won
//! them: another that looks at that very job in that moment may know of it before
//! the counters do.)
//!
//! The counters lie on pages. A worker has a page of its own for what happens in a
//! job's step, and adds to it with plain stores; all other events go to one of
//! [`SHARED`] pages, by thread. So no worker waits for a cache line of another.
//!
//! Orderings: an increment is `Release` and a read `Acquire`, so that a reader that
//! sees an event sees those that led to it. A page's own worker is the only one
//! that writes it, so its load may be `Relaxed`.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crossbeam_utils::CachePadded;

use super::thread;
use crate::metrics::Metrics;
#[cfg(feature = "metrics")]
use crate::metrics::timings::Timings;
use crate::task::Event;

const EVENTS: usize = Event::ClosedSuspended as usize + 1;
/// More than most machines have I/O workers.
const SHARED: usize = 16;

pub(crate) struct Counters {
    /// By worker; then one for threads that are not workers of their own number
    /// (Tokio makes some where a job blocks in place); then the shared ones.
    pages: Box<[CachePadded<[AtomicU64; EVENTS]>]>,
    workers: usize,
    #[cfg(feature = "metrics")]
    pub(super) timings: Timings,
}

impl Counters {
    pub(super) fn new(workers: usize) -> Self {
        let pages = workers + 1 + SHARED;
        Self {
            pages: (0..pages).map(|_| CachePadded::default()).collect(),
            workers,
            #[cfg(feature = "metrics")]
            timings: Timings::new(),
        }
    }

    /// Only for a thread of the level, in a step of a job.
    pub(super) fn count_in_step(&self, event: Event) {
        match thread::worker() {
            Some(worker) if worker < self.workers => {
                let own = &self.pages[worker][event as usize];
                own.store(own.load(Relaxed) + 1, Release);
            }
            _ => self.add(self.workers, event),
        }
    }

    pub(super) fn count(&self, event: Event) {
        self.add(self.workers + 1 + thread::number() % SHARED, event);
    }

    fn add(&self, page: usize, event: Event) {
        self.pages[page][event as usize].fetch_add(1, Release);
    }

    fn sum(&self, event: Event) -> u64 {
        let counts = self.pages.iter().map(|page| &page[event as usize]);
        counts.map(|count| count.load(Acquire)).sum()
    }

    /// How many jobs a thread runs now. What is subtracted is read before.
    pub(crate) fn running(&self) -> u64 {
        let ended = [Event::Completed, Event::Panicked, Event::Suspended];
        let ended: u64 = ended.map(|event| self.sum(event)).iter().sum();
        self.sum(Event::Begun).saturating_sub(ended)
    }

    /// What a job does later is read before what it does sooner, so that no end is
    /// found without its submission.
    pub(crate) fn read(&self) -> Metrics {
        let [cancelled, expired, dropped, closed_queued] = [
            Event::Cancelled,
            Event::Expired,
            Event::Dropped,
            Event::ClosedQueued,
        ]
        .map(|event| self.sum(event));
        let no_longer_suspended = self.sum(Event::Woken) + self.sum(Event::ClosedSuspended);
        let [completed, panicked, rested] =
            [Event::Completed, Event::Panicked, Event::Suspended].map(|event| self.sum(event));
        let begun = self.sum(Event::Begun);
        let woken = self.sum(Event::Woken);
        let submitted = self.sum(Event::Submitted);
        Metrics {
            submitted,
            rejected: self.sum(Event::Rejected),
            completed,
            panicked,
            cancelled,
            expired,
            dropped,
            queued: (submitted + woken).saturating_sub(begun + closed_queued),
            running: begun.saturating_sub(completed + panicked + rested),
            suspended: rested.saturating_sub(no_longer_suspended),
            #[cfg(feature = "metrics")]
            queue_wait: self.timings.waits(),
            #[cfg(feature = "metrics")]
            run_time: self.timings.steps(),
        }
    }
}
