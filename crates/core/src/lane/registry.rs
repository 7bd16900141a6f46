//! The jobs of a lane that may be in none of its queues, so that a shutdown finds them:
//! the futures that have been suspended at least once and have not ended.
//!
//! The registry has shards, and a thread's number selects its shard, so that threads
//! seldom wait for the same lock. The threads of each priority have their own group of
//! shards, so that none waits for a lock that a thread with a higher nice value holds.

use std::sync::{Arc, Mutex, MutexGuard};

use slab::Slab;

use super::thread;
use crate::priority::Priority;
use crate::task::{RegistryKey, Runnable, thread_number};

/// Shards in one group.
const OF_A_GROUP: usize = 4;
const SLABS: usize = OF_A_GROUP * Priority::ALL.len();

#[derive(Default)]
pub(super) struct Registry([Mutex<Slab<Arc<dyn Runnable>>>; SLABS]);

impl Registry {
    pub(super) fn insert(&self, job: Arc<dyn Runnable>) -> RegistryKey {
        // A job is registered by a thread of its lane.
        let group = thread::ask_own(|own| own.priority.index()).unwrap_or(0);
        let shard = group * OF_A_GROUP + thread_number() % OF_A_GROUP;
        let key = self.lock(shard).insert(job) * SLABS + shard;
        RegistryKey::MIN.saturating_add(key)
    }

    pub(super) fn remove(&self, key: RegistryKey) {
        let key = key.get() - 1;
        let job = self.lock(key % SLABS).try_remove(key / SLABS);
        // Outside the lock: this may be the last reference, and a destructor may run.
        drop(job);
    }

    /// The jobs in `n` slots of each shard, from the slot `first` on. `None` behind the last slot.
    pub(super) fn in_slots(&self, first: usize, n: usize) -> Option<Vec<Arc<dyn Runnable>>> {
        let (mut found, mut is_behind) = (Vec::new(), true);
        for shard in 0..SLABS {
            let jobs = self.lock(shard);
            is_behind &= first >= jobs.capacity();
            let slots = first..jobs.capacity().min(first + n);
            found.extend(slots.filter_map(|slot| jobs.get(slot).cloned()));
        }
        (!is_behind).then_some(found)
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, Slab<Arc<dyn Runnable>>> {
        self.0[shard]
            .lock()
            .expect("no foreign code runs under the registry's lock")
    }
}
