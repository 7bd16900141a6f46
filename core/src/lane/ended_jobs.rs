//! [`EndedJobs`]: threads that compute on for jobs that have ended.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// One counter for each job that has ended and may still have parts: each part holds it.
#[derive(Default)]
pub(super) struct EndedJobs(Mutex<Vec<Weak<AtomicUsize>>>);

impl EndedJobs {
    pub(super) fn push(&self, threads: &Arc<AtomicUsize>) {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counters.retain(|of_job| of_job.strong_count() > 0);
        counters.push(Arc::downgrade(threads));
    }

    pub(super) fn threads(&self) -> usize {
        let counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let threads = |of_job: &Weak<AtomicUsize>| Some(of_job.upgrade()?.load(Relaxed));
        counters.iter().filter_map(threads).sum()
    }
}
