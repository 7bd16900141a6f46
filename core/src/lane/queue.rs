//! The run queue of one priority: short jobs in FIFO order, behind them all other ready jobs, and
//! behind these the jobs that have yielded.
//!
//! A long future that yields ([`yield_if_due`](crate::yield_if_due)) must not delay a
//! short job that comes late. In one FIFO queue, the short job would wait for a slice
//! of each long future before it. So a job that yielded goes behind every job that has
//! not run yet, and behind every job that was woken by what it waited for.
//!
//! **Short jobs first.** At `Priority::Normal` a job whose call site is known to be short
//! (`call_sites/length.rs`) goes before those that are not. It waits for the steps that run, and
//! for no long one that is queued. While no short job is queued, the next one of an unknown site
//! goes there too, so the lane gets to know the site one job at a time. The jobs of one site begin
//! in the order in which they were pushed, as long as what is known of the site does not change.
//!
//! No thread of another priority helps: threads beside those of `Normal`, which sleep and wake up
//! for each short job, made threads of the I/O lane wait for a tick (`docs/late_job.md`).
//!
//! No job starves: after [`PASSES`] jobs in a row have passed those of a queue, their turn comes.

use std::sync::Arc;

use crate::sync::{AtomicUsize, Ordering::Relaxed, Queue};
use crate::task::Run;

/// The most jobs in a row that pass the jobs of one queue. These get at least one turn in nine.
const PASSES: usize = 8;

/// A job out of the queue.
pub(crate) struct Popped {
    pub(crate) job: Arc<dyn Run>,
    /// It was among the short ones.
    pub(crate) is_short: bool,
}

#[derive(Default)]
pub(super) struct RunQueue {
    /// Those that were known to be short, or tried, when they were pushed.
    short: Queue<Arc<dyn Run>>,
    ready: Queue<Arc<dyn Run>>,
    yielded: Queue<Arc<dyn Run>>,
    passed_ready: Passed,
    passed_yielded: Passed,
}

/// Jobs in a row that passed those that wait in a queue. A hint: two threads that pop at the same
/// time may miscount by one.
#[derive(Default)]
struct Passed(AtomicUsize);

impl Passed {
    /// One job more is about to pass. True if the queue has its turn instead.
    fn is_turn(&self) -> bool {
        let passed = self.0.load(Relaxed);
        let is_turn = passed >= PASSES;
        self.0.store(if is_turn { 0 } else { passed + 1 }, Relaxed);
        is_turn
    }
}

impl RunQueue {
    pub(super) fn push(&self, job: Arc<dyn Run>, is_short: bool) {
        match is_short {
            true => self.short.push(job),
            false => self.ready.push(job),
        }
    }

    /// Queues a job that was woken in its own step. A job that yielded goes behind
    /// those that have not run yet.
    pub(super) fn put_back(&self, Popped { job, is_short }: Popped, yielded: bool) {
        match yielded {
            true => self.yielded.push(job),
            false => self.push(job, is_short),
        }
    }

    pub(super) fn pop(&self) -> Option<Popped> {
        // Check for emptiness first: a `pop` that finds nothing costs a fence.
        let of = |queue: &Queue<_>, is_short| {
            let job = queue.pop()?;
            Some(Popped { job, is_short })
        };
        if !self.yielded.is_empty() && (self.is_front_empty() || self.passed_yielded.is_turn()) {
            if let Some(yielded) = of(&self.yielded, false) {
                return Some(yielded);
            }
        }
        if self.has_short() && (self.ready.is_empty() || !self.passed_ready.is_turn()) {
            if let Some(short) = of(&self.short, true) {
                return Some(short);
            }
        }
        let other = of(&self.ready, false).or_else(|| of(&self.yielded, false));
        // Other threads have taken what had its turn.
        other.or_else(|| of(&self.short, true))
    }

    pub(super) fn has_short(&self) -> bool {
        !self.short.is_empty()
    }

    fn is_front_empty(&self) -> bool {
        self.ready.is_empty() && self.short.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.short.len() + self.ready.len() + self.yielded.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.is_front_empty() && self.yielded.is_empty()
    }
}
