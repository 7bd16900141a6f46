//! The jobs of a lane that rest in no queue of its own, so that a shutdown finds them:
//! on `Backend::Rayon` the suspended futures, on `Backend::Runtime` the jobs whose
//! tasks wait for them (see `pool/tokio.rs`).
//!
//! It is cut in shards, by thread, so that threads seldom meet at a lock. The threads
//! of each priority have shards of their own, and all other threads have: so an I/O
//! thread does not wait for a lock that a thread of less weight holds. (One that drops
//! a task which was awaited elsewhere may.)

use std::sync::{Arc, Mutex, MutexGuard};

use slab::Slab;

use super::thread;
use crate::priority::Priority;
use crate::task::{RegistryKey, Run};

const OF_A_GROUP: usize = 4;
const SHARDS: usize = OF_A_GROUP * (1 + Priority::ALL.len());

#[derive(Default)]
pub(super) struct Registry([Mutex<Slab<Arc<dyn Run>>>; SHARDS]);

impl Registry {
    pub(super) fn insert(&self, job: Arc<dyn Run>) -> RegistryKey {
        let group = thread::own_priority().map_or(0, |priority| 1 + priority.index());
        let shard = group * OF_A_GROUP + thread::number() % OF_A_GROUP;
        let key = self.lock(shard).insert(job) * SHARDS + shard;
        RegistryKey::MIN.saturating_add(key)
    }

    pub(super) fn remove(&self, key: RegistryKey) {
        let key = key.get() - 1;
        let job = self.lock(key % SHARDS).try_remove(key / SHARDS);
        // Outside the lock: it may be the last reference.
        drop(job);
    }

    pub(super) fn all(&self) -> Vec<Arc<dyn Run>> {
        let of_shard = |shard| {
            let jobs = self.lock(shard);
            jobs.iter().map(|(_, job)| job.clone()).collect::<Vec<_>>()
        };
        (0..SHARDS).flat_map(of_shard).collect()
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, Slab<Arc<dyn Run>>> {
        self.0[shard]
            .lock()
            .expect("no foreign code runs under the registry's lock")
    }
}
