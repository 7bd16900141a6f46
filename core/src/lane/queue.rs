//! The run queue of one priority: short jobs in FIFO order, behind them all other ready jobs, and
//! behind these the jobs that have yielded.
//!
//! A long future that yields ([`yield_if_due`](crate::yield_if_due)) must not delay a
//! short job that comes late. In one FIFO queue, the short job would wait for a slice
//! of each long future before it. So a job that yielded goes behind every job that has
//! not run yet, and behind every job that was woken by what it waited for.
//!
//! No job starves: after [`PASSES`] jobs in a row have passed those of a queue, their turn comes.

use std::sync::Arc;

use crate::metrics::call_sites::Length;
use crate::sync::{AtomicUsize, Ordering::Relaxed, Queue};
use crate::task::Run;

/// The most jobs in a row that pass the jobs of one queue. These get at least one turn in nine.
const PASSES: usize = 8;

#[derive(Default)]
pub(super) struct RunQueue {
    /// Those that were short, or tried, when they were pushed (`short_first.rs`).
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
    pub(super) fn push(&self, job: Arc<dyn Run>) {
        self.ready.push(job);
    }

    pub(super) fn push_short(&self, job: Arc<dyn Run>) {
        self.short.push(job);
    }

    pub(super) fn push_behind(&self, job: Arc<dyn Run>) {
        self.yielded.push(job);
    }

    /// The next job, and whether it was among the short ones.
    pub(super) fn pop(&self) -> Option<(Arc<dyn Run>, bool)> {
        // Check for emptiness first: a `pop` that finds nothing costs a fence.
        if !self.yielded.is_empty() && (self.is_front_empty() || self.passed_yielded.is_turn()) {
            if let Some(job) = self.yielded.pop() {
                return Some((job, false));
            }
        }
        if self.has_short() && (self.ready.is_empty() || !self.passed_ready.is_turn()) {
            if let Some(job) = self.short.pop() {
                return Some((job, true));
            }
        }
        let other = self.ready.pop().or_else(|| self.yielded.pop());
        match other {
            Some(job) => Some((job, false)),
            // Other threads have taken what had its turn.
            None if self.has_short() => self.pop(),
            None => None,
        }
    }

    /// The next of the short jobs that `takes`. The others, and those that are known to be long by
    /// now, go to the other jobs. Calls `moved` after each of these.
    pub(super) fn pop_short(
        &self,
        takes: impl Fn(Length) -> bool,
        moved: impl Fn(),
    ) -> Option<Arc<dyn Run>> {
        while let Some(job) = self.short.pop() {
            let length = job.length();
            if length != Length::Long && takes(length) {
                return Some(job);
            }
            self.ready.push(job);
            moved();
        }
        None
    }

    pub(super) fn short(&self) -> usize {
        self.short.len()
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
