//! The run queue of one priority: ready jobs in FIFO order, and behind them the jobs
//! that have yielded.
//!
//! A long future that yields ([`yield_if_due`](crate::yield_if_due)) must not delay a
//! short job that comes late. In one FIFO queue, the short job would wait for a slice
//! of each long future before it. So a job that yielded goes behind every job that has
//! not run yet, and behind every job that was woken by what it waited for. It does not
//! starve: after [`PASSES`] jobs in a row have passed it, its turn comes.

use std::sync::Arc;

use crate::sync::{AtomicUsize, Ordering::Relaxed, Queue};
use crate::task::Run;

/// The most jobs in a row that pass a job that yielded. So a late job waits for at most
/// one slice more, and the jobs that yielded get at least one turn in nine.
const PASSES: usize = 8;

pub(super) struct RunQueue {
    ready: Queue<Arc<dyn Run>>,
    yielded: Queue<Arc<dyn Run>>,
    /// Jobs popped from `ready` while a job that yielded was waiting. A hint: two
    /// threads that pop at the same time may miscount by one.
    passed: AtomicUsize,
}

impl RunQueue {
    pub(super) fn new() -> Self {
        Self {
            ready: Queue::new(),
            yielded: Queue::new(),
            passed: AtomicUsize::new(0),
        }
    }

    pub(super) fn push(&self, job: Arc<dyn Run>) {
        self.ready.push(job);
    }

    pub(super) fn push_behind(&self, job: Arc<dyn Run>) {
        self.yielded.push(job);
    }

    pub(super) fn pop(&self) -> Option<Arc<dyn Run>> {
        if !self.yielded.is_empty() {
            let passed = self.passed.load(Relaxed);
            // Check for emptiness first: a `pop` that finds nothing costs a fence.
            if passed >= PASSES || self.ready.is_empty() {
                self.passed.store(0, Relaxed);
                if let Some(job) = self.yielded.pop() {
                    return Some(job);
                }
            } else {
                self.passed.store(passed + 1, Relaxed);
            }
        }
        self.ready.pop().or_else(|| self.yielded.pop())
    }

    pub(super) fn len(&self) -> usize {
        self.ready.len() + self.yielded.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.yielded.is_empty()
    }
}
