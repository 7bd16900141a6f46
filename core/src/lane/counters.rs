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
//! job's step, and adds to it with plain stores. All other events go to one of
//! [`SHARED`] pages, which the thread's number selects. So no worker waits for a cache
//! line of another worker.
//!
//! **Orderings.** An increment is `Release` and a read is `Acquire`. So a reader that
//! sees an event also sees the events that led to it. Only the page's own worker writes
//! to its page, so that worker's load may be `Relaxed`.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crossbeam_utils::CachePadded;

use super::{ThreadSettings, thread};
#[cfg(feature = "metrics")]
use crate::metrics::DurationHistogram;
use crate::metrics::Metrics;
use crate::metrics::held::Held;
use crate::metrics::io_watch::IoWatch;
#[cfg(feature = "metrics")]
use crate::metrics::timings::{self, Timings};
use crate::shard;
use crate::task::Event;

const EVENTS: usize = Event::ClosedSuspended as usize + 1;
/// Most machines have fewer I/O workers.
const SHARED: usize = 16;

pub(crate) struct Counters {
    /// One page per worker, by its index. Then one page for lane threads without a
    /// worker index (Tokio starts such threads where a job blocks in place). Then the
    /// shared pages.
    pages: Box<[CachePadded<[AtomicU64; EVENTS]>]>,
    workers: usize,
    pub(super) held: Held,
    #[cfg(feature = "metrics")]
    pub(super) timings: Option<Box<Timings>>,
}

impl Counters {
    pub(super) fn new(settings: &ThreadSettings) -> Self {
        let workers = settings.threads;
        let pages = workers + 1 + SHARED;
        Self {
            pages: (0..pages).map(|_| CachePadded::default()).collect(),
            workers,
            #[cfg(feature = "metrics")]
            held: Held::new(settings.has_histograms),
            #[cfg(not(feature = "metrics"))]
            held: Held::default(),
            #[cfg(feature = "metrics")]
            timings: settings.has_histograms.then(Box::default),
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
        self.count_from(shard::number(), event);
    }

    /// For the thread of that number.
    pub(super) fn count_from(&self, thread: usize, event: Event) {
        self.add(self.workers + 1 + thread % SHARED, event);
    }

    fn add(&self, page: usize, event: Event) {
        self.pages[page][event as usize].fetch_add(1, Release);
    }

    fn sum(&self, event: Event) -> u64 {
        let counts = self.pages.iter().map(|page| &page[event as usize]);
        counts.map(|count| count.load(Acquire)).sum()
    }

    /// Returns how many jobs run now. Reads the subtracted counters first.
    pub(crate) fn running(&self) -> u64 {
        let ended = [Event::Completed, Event::Panicked, Event::Suspended];
        let ended: u64 = ended.map(|event| self.sum(event)).iter().sum();
        self.sum(Event::Begun).saturating_sub(ended)
    }

    #[cfg(feature = "metrics")]
    fn times(&self, of: fn(&Timings) -> DurationHistogram) -> DurationHistogram {
        self.timings.as_deref().map_or_else(timings::none, of)
    }

    /// Reads what happens to a job later before what happens to it sooner. So it never
    /// finds an end without its submission.
    ///
    /// `threads` and the queue's permits are the caller's to fill in.
    pub(crate) fn read(&self, io: &IoWatch) -> Metrics {
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
            io_stalls: io.stalls(),
            cpu_stalls: io.cpu_stalls(),
            #[cfg(feature = "metrics")]
            io_lag: io.lag.read(),
            #[cfg(feature = "metrics")]
            queue_wait: self.times(Timings::waits),
            #[cfg(feature = "metrics")]
            run_time: self.times(Timings::steps),
            #[cfg(feature = "metrics")]
            bridge_bytes: self.held.bytes(),
        }
    }
}
