//! The registry of futures that rest in no queue, so that a shutdown finds
//! them.

use std::sync::{Arc, Mutex, MutexGuard};

use slab::Slab;

use crate::job::Run;

/// The futures of one priority that have been suspended at least once and have not
/// ended. Each priority has its own, so that no thread waits for a lock that one of
/// less weight holds: only the priority's own threads lock it, and the warden. (And
/// a submitter that meets a shutdown, for its own job.)
#[derive(Default)]
pub(crate) struct Suspended(Mutex<Slab<Arc<dyn Run>>>);

impl Suspended {
    pub(crate) fn insert(&self, job: Arc<dyn Run>) -> usize {
        self.lock().insert(job)
    }

    pub(crate) fn remove(&self, key: usize) {
        let job = self.lock().try_remove(key);
        // Outside the lock: it may be the last reference.
        drop(job);
    }

    pub(super) fn all(&self) -> Vec<Arc<dyn Run>> {
        self.lock().iter().map(|(_, job)| job.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Slab<Arc<dyn Run>>> {
        self.0
            .lock()
            .expect("no foreign code runs under the registry's lock")
    }
}
