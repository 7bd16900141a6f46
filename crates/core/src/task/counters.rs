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
//! job's step (`step.rs`), and adds to it with plain stores. All other events go to one of
//! [`SHARED`] pages, which the thread's number selects. So no worker waits for a cache
//! line of another worker.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use stallwatch::Name;

use crate::error::CloseReason;
use crate::metrics::Metrics;
use crate::metrics::call_sites::{CallSite, Running, Sites};
use crate::metrics::histogram::Timings;
use crate::pace::clock::now;
use crate::pace::length::{self, Length};
use crate::priority::Priority;

/// The events that a level counts.
#[derive(Clone, Copy)]
pub(crate) enum Event {
    Submitted,
    Rejected,
    /// A step began.
    Begun,
    /// A step ended without an output, and the job is about to be suspended.
    Suspended,
    /// A job that was suspended, or about to be, is going to be queued.
    Woken,
    Completed,
    Panicked,
    Cancelled,
    Expired,
    /// The lane itself closed the job.
    Dropped,
    /// Counted in addition to `Cancelled`, `Expired` or `Dropped`: where the job was.
    ClosedQueued,
    ClosedSuspended,
}

impl Event {
    pub(super) fn of_close(cause: CloseReason) -> Self {
        match cause {
            CloseReason::Cancelled => Self::Cancelled,
            CloseReason::Expired => Self::Expired,
            _ => Self::Dropped,
        }
    }
}

/// The bits of a site's index.
const SITE: u64 = Name::MOST as u64 - 1;
const _: () = assert!(Name::MOST.is_power_of_two());

const EVENTS: usize = Event::ClosedSuspended as usize + 1;

/// One counter for each [`Event`].
///
/// An increment is `Release` and a read is `Acquire`. So a reader that sees an event also sees
/// the events that led to it.
///
/// A worker's own page also has the step that it runs, for one who reads what runs now.
#[derive(Default)]
pub(crate) struct Page {
    counts: [AtomicU64; EVENTS],
    /// The index of its site, and above that when it began: nanoseconds without the last bits, or 0
    /// if that is not known.
    step: AtomicU64,
}

impl Page {
    pub(super) fn add(&self, event: Event) {
        self.counts[event as usize].fetch_add(1, Release);
    }

    /// Only for a thread that is the only one to write to this page.
    #[inline]
    pub(super) fn add_alone(&self, event: Event) {
        let count = &self.counts[event as usize];
        count.store(count.load(Relaxed) + 1, Release);
    }

    /// Likewise. A step of that site begins.
    #[inline]
    pub(super) fn set_step(&self, site: Name, since: u64) {
        let step = since & !SITE | u64::from(site.index());
        self.step.store(step, Relaxed);
    }

    fn is_running(&self) -> bool {
        let ended = [Event::Completed, Event::Panicked, Event::Suspended];
        let ended: u64 = ended.map(|event| self.count(event)).iter().sum();
        self.count(Event::Begun) > ended
    }

    /// The step that runs, and for how long, counted from now if that is not known.
    fn step(&self, now: u64) -> Option<Running> {
        let is_running = self.is_running();
        let timed = |step| (step <= SITE).then_some(now & !SITE | step);
        // An error: it is known.
        let _ = self.step.fetch_update(Relaxed, Relaxed, timed);
        let step = self.step.load(Relaxed);
        let lasted = Duration::from_nanos(now.saturating_sub(step & !SITE));
        let site = Name::at((step & SITE) as u32)?;
        is_running.then_some((site, lasted))
    }

    fn count(&self, event: Event) -> u64 {
        self.counts[event as usize].load(Acquire)
    }
}

/// A number of this thread: of what many threads write at the same time, it selects the shard of
/// its own, so that it seldom waits for a cache line or a lock of another thread.
pub(crate) fn thread_number() -> usize {
    // Relaxed: the numbers spread the threads and order nothing.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// Most machines have fewer I/O workers.
const SHARED: usize = 16;

pub(crate) struct Counters {
    /// One page per worker, by its index. Then one page for lane threads without a
    /// worker index (a job runs beside its parts, or by the help of another priority). Then the
    /// shared pages.
    pages: Box<[CachePadded<Page>]>,
    workers: usize,
    /// `None` if they are not recorded.
    pub(crate) timings: Option<Box<Timings>>,
    /// The same by call site.
    pub(crate) sites: Sites,
}

impl Counters {
    pub(crate) fn new(workers: usize, has_histograms: bool) -> Self {
        let pages = workers + 1 + SHARED;
        Self {
            pages: (0..pages).map(|_| CachePadded::default()).collect(),
            workers,
            timings: has_histograms.then(Box::default),
            sites: Sites::new(),
        }
    }

    /// The page for the steps of the worker of that index, and whether others share it.
    pub(crate) fn page(&self, worker: Option<usize>) -> (&Page, bool) {
        let own = worker.filter(|worker| *worker < self.workers);
        (&self.pages[own.unwrap_or(self.workers)], own.is_none())
    }

    /// For the thread of that number.
    pub(crate) fn count_from(&self, thread: usize, event: Event) {
        self.pages[self.workers + 1 + thread % SHARED].add(event);
    }

    pub(crate) fn sum(&self, event: Event) -> u64 {
        self.pages.iter().map(|page| page.count(event)).sum()
    }

    /// Whether each worker runs a step that is long: of a site that is known to be, or a sample that
    /// has been so. A hint. Submitters call it: it writes nothing, and mostly reads one word.
    pub(crate) fn all_run_long(&self) -> bool {
        let is_long = |page: &CachePadded<Page>| {
            let step = page.step.load(Relaxed);
            let lasted = || Duration::from_nanos(now().saturating_sub(step & !SITE));
            let site = Name::at((step & SITE) as u32);
            let is_of_long = site.is_some_and(|site| self.sites.length(site) == Length::Long);
            (is_of_long || (step > SITE && lasted() >= length::SHORT)) && page.is_running()
        };
        self.pages[..self.workers].iter().all(is_long)
    }

    pub(crate) fn call_sites(&self, priority: Priority) -> Vec<CallSite> {
        let (now, workers) = (now(), &self.pages[..self.workers]);
        let running: Vec<_> = workers.iter().filter_map(|page| page.step(now)).collect();
        self.sites.read(priority, &running)
    }

    /// Reads what happens to a job later before what happens to it sooner. So it never
    /// finds an end without its submission. `limit`: of the queue, and the permits in use.
    pub(crate) fn read(&self, tokio_tasks: usize, limit: Option<(usize, usize)>) -> Metrics {
        let cancelled = self.sum(Event::Cancelled);
        let expired = self.sum(Event::Expired);
        let dropped = self.sum(Event::Dropped);
        let closed_queued = self.sum(Event::ClosedQueued);
        let no_longer_suspended = self.sum(Event::Woken) + self.sum(Event::ClosedSuspended);
        let completed = self.sum(Event::Completed);
        let panicked = self.sum(Event::Panicked);
        let suspended = self.sum(Event::Suspended);
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
            threads: self.workers as u64,
            queue_limit: limit.map(|(jobs, _)| jobs as u64),
            permits_in_use: limit.map_or(0, |(_, in_use)| in_use as u64),
            tokio_tasks: tokio_tasks as u64,
            queue_wait: timings.map(|of| of.waits.read()).unwrap_or_default(),
            run_time: timings.map(|of| of.steps.read()).unwrap_or_default(),
        }
    }
}
