//! How many jobs of a level are in a step.

use std::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use crossbeam_utils::CachePadded;

use crate::context;

/// By worker, so that no two write the same cache line, and none needs more
/// than a store. The last is for threads that are not workers of their own
/// number: Tokio makes some where a job blocks in place.
pub(super) struct Running(Box<[CachePadded<AtomicUsize>]>);

impl Running {
    pub(super) fn new(workers: usize) -> Self {
        Self((0..=workers).map(|_| CachePadded::default()).collect())
    }

    pub(super) fn sum(&self) -> usize {
        self.0.iter().map(|n| n.load(Acquire)).sum()
    }

    /// Counts while `step` runs, which does not unwind.
    pub(super) fn count<R>(&self, step: impl FnOnce() -> R) -> R {
        let strangers = self.0.len() - 1;
        match context::worker_index() {
            Some(worker) if worker < strangers => {
                let mine = &self.0[worker];
                let before = mine.load(Relaxed);
                mine.store(before + 1, Release);
                let result = step();
                mine.store(before, Release);
                result
            }
            _ => {
                let theirs = &self.0[strangers];
                theirs.fetch_add(1, Release);
                let result = step();
                theirs.fetch_sub(1, Release);
                result
            }
        }
    }
}
