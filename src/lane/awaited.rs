//! The jobs of a lane on [`Backend::Runtime`](crate::Backend::Runtime) that are
//! awaited, so that a shutdown can tell their awaiters; see `backend/runtime.rs`.
//!
//! It is cut in shards, by thread, so that awaiters seldom meet at a lock. The threads of
//! each priority have shards of their own, and all other threads have: so an I/O thread
//! does not wait for a lock that a thread of less weight holds. (One that drops a task
//! which was awaited elsewhere may.)

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use slab::Slab;

use crate::context;
use crate::job::Run;
use crate::priority::Priority;

const OF_A_GROUP: usize = 4;
const SHARDS: usize = OF_A_GROUP * (1 + Priority::ALL.len());

#[derive(Default)]
pub(crate) struct Awaited([Mutex<Slab<Arc<dyn Run>>>; SHARDS]);

/// Where a job is in the register, plus one: so a [`Task`](crate::Task) without one is
/// no larger.
#[derive(Clone, Copy)]
pub(crate) struct AwaitedKey(NonZeroUsize);

impl Awaited {
    pub(crate) fn enter(&self, job: Arc<dyn Run>) -> AwaitedKey {
        thread_local! {
            static SHARD: usize = {
                static NEXT: AtomicUsize = AtomicUsize::new(0);
                let group = context::own_priority().map_or(0, |priority| 1 + priority.index());
                // Relaxed: threads only have to be spread over the shards.
                group * OF_A_GROUP + NEXT.fetch_add(1, Relaxed) % OF_A_GROUP
            };
        }
        let shard = SHARD.try_with(|shard| *shard).unwrap_or(0);
        let key = self.lock(shard).insert(job) * SHARDS + shard;
        AwaitedKey(NonZeroUsize::MIN.saturating_add(key))
    }

    pub(crate) fn leave(&self, AwaitedKey(key): AwaitedKey) {
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
        self.0[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
