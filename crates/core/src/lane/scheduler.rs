//! [`Scheduler`]: what a job calls back.
//!
//! Each job holds a reference to its level. All cores that submit and run jobs would write the one
//! count of these, twice for each job. So a level has several counts ([`Shard`]), and the number of
//! the thread that submits selects one.

use std::sync::Arc;
use std::time::Instant;

use crossbeam_utils::CachePadded;
use stallwatch::{Entered, Name};

use super::{Level, thread};
use crate::error::CloseReason;
use crate::key::Key;
use crate::pace::Popped;
use crate::sync::Ordering::SeqCst;
use crate::task::{Counters, RegistryKey, Runnable, Schedule};

/// One of the reference counts of a level, in a cache line of its own.
pub(super) type Shard = CachePadded<Arc<Level>>;

/// A level, as one of its jobs sees it.
#[derive(Clone)]
pub(crate) struct Scheduler {
    pub(super) level: Arc<Shard>,
    /// The call site of the job.
    pub(super) site: Name,
}

impl Schedule for Scheduler {
    #[inline]
    fn reason_for_jobs(&self) -> Option<CloseReason> {
        let lane = &self.level.lane;
        lane.is_closed().then(|| lane.reason_for_jobs())
    }

    fn enqueue(&self, job: Arc<dyn Runnable>, is_short: bool, key: Option<&Key>) {
        self.level.enqueue(job, is_short, key);
    }

    fn enqueue_beside_parts(&self, job: Arc<dyn Runnable>, is_short: bool, key: Option<&Key>) {
        match self.level.companion() {
            Some(companion) => companion.spawn_steps(&self.level, job),
            // The system gave it no threads, and the job goes on without.
            None => self.enqueue(job, is_short, key),
        }
    }

    fn end_turn(&self, popped: &mut Popped) {
        self.level.queue.end_turn(popped);
    }

    #[inline]
    fn is_short(&self, has_key: bool) -> bool {
        self.level.is_short(self.site, has_key)
    }

    fn register(&self, job: Arc<dyn Runnable>) -> RegistryKey {
        self.level.lane.registry.insert(job)
    }

    fn unregister(&self, key: RegistryKey) {
        self.level.lane.registry.remove(key);
    }

    #[inline]
    fn enter_step(&self, is_closure: bool, deadline: Option<Instant>) -> Option<Entered> {
        let level = &self.level;
        let enter = || level.enter_watched(self.site, is_closure, deadline);
        stallwatch::is_watched().then(enter).flatten()
    }

    fn is_own_worker(&self) -> bool {
        thread::is_worker_of(&self.level.lane)
    }

    fn counters(&self) -> &Counters {
        &self.level.counters
    }

    fn site(&self) -> Name {
        self.site
    }

    fn count_lost(&self) {
        self.level.lane.lost.fetch_add(1, SeqCst);
    }
}
