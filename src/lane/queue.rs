//! What waits for a thread: jobs in the order of their coming, and behind them
//! those that have had a turn and gave way.
//!
//! A long future that gives way ([`yield_if_due`](crate::yield_if_due)) would
//! make a small one that comes late wait for a slice of each long one before
//! it. So it goes behind everything that has not run yet or was woken by what
//! it waited for. And it is not starved by that: when [`PASSES`] jobs in a row
//! have gone before it, it is its turn.

use std::sync::Arc;

use crate::sync::{AtomicUsize, Ordering::Relaxed, Queue};
use crate::task::Run;

/// A late job waits for at most one slice more by this; a job that gave way
/// has at least a ninth of the turns.
const PASSES: usize = 8;

pub(super) struct RunQueue {
    ready: Queue<Arc<dyn Run>>,
    yielded: Queue<Arc<dyn Run>>,
    /// Jobs taken from `ready` while one that gave way was waiting. A hint: two
    /// threads that take at once may count wrong by one.
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
            // Asked before it is popped: a pop that finds nothing costs a fence.
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

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.yielded.is_empty()
    }
}
