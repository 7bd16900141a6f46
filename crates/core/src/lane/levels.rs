//! [`Levels`]: all priorities of a lane, for those who own it or end it.

use std::array;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::scheduler::Shard;
use super::{Lane, Level};
use crate::limits::Limit;
use crate::metrics::call_sites::CallSites;
use crate::panics;
use crate::priority::Priority;
use crate::remaining::Remaining;
use crate::sync::Ordering::SeqCst;
use crate::task::{Event, Runnable};

/// Most machines have fewer I/O workers.
const SHARDS: usize = 16;

pub(crate) struct Levels {
    pub(crate) lane: Arc<Lane>,
    /// By priority, with the reference counts for its jobs.
    levels: [[Arc<Shard>; SHARDS]; Priority::ALL.len()],
}

impl Levels {
    pub(crate) fn new(lane: Arc<Lane>, limits: [Limit; Priority::ALL.len()]) -> Arc<Self> {
        let new = |priority: Priority| Level::new(&lane, priority, limits[priority.index()]);
        let [high, mut normal, low] = Priority::ALL.map(new);
        let (high, low) = (Arc::new(high), Arc::new(low));
        let can_help = lane.settings.threads(Priority::High) > 1;
        normal.helper = can_help.then(|| high.clone());
        let shards = |level: Arc<Level>| array::from_fn(|_| Arc::new(Shard::new(level.clone())));
        let levels = [high, Arc::new(normal), low].map(shards);
        Arc::new(Self { lane, levels })
    }

    pub(super) fn shard(&self, priority: Priority, thread: usize) -> &Arc<Shard> {
        &self.levels[priority.index()][thread % SHARDS]
    }

    pub(crate) fn at(&self, priority: Priority) -> &Arc<Level> {
        self.shard(priority, 0)
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Level>> {
        Priority::ALL.into_iter().map(|priority| self.at(priority))
    }

    pub(crate) fn call_sites(&self) -> CallSites {
        let sites = |level: &Arc<Level>| level.counters.call_sites(level.priority);
        let keys = self.all().flat_map(|level| level.keys());
        CallSites::new(self.all().flat_map(sites).collect(), keys.collect())
    }

    pub(crate) fn has_queued(&self) -> bool {
        self.all().any(|level| level.has_queued())
    }

    /// Returns how many jobs run now, over all priorities.
    pub(crate) fn running(&self) -> u64 {
        let sum = |event| self.all().map(|it| it.counters.sum(event)).sum::<u64>();
        // The ends first: so a step that ends meanwhile counts.
        let ended = sum(Event::Completed) + sum(Event::Panicked) + sum(Event::Suspended);
        sum(Event::Begun).saturating_sub(ended)
    }

    /// What has not ended, of a lane that is closed. `idle`: how many of its threads only wait for
    /// work.
    pub(super) fn remaining(&self, idle: usize) -> Remaining {
        Remaining {
            jobs: usize::try_from(self.running()).unwrap_or(usize::MAX),
            threads: self.lane.alive.load(SeqCst) - idle,
            tokio_tasks: self.all().map(|level| level.tokio_tasks()).sum(),
        }
    }

    /// Whether a job may be refused.
    pub(super) fn may_refuse(&self) -> bool {
        self.all().any(|level| level.limits.may_refuse())
    }

    pub(super) fn limits(&self) -> impl Iterator<Item = &Semaphore> {
        self.all().flat_map(|level| level.limits.semaphores())
    }

    /// Ends every wait for a permit with an error.
    pub(super) fn close_limits(&self) {
        for limit in self.limits().chain([&*self.lane.closing]) {
            // A waker that panics keeps the semaphore from waking the waiters behind
            // it. So close the semaphore again for these.
            while panics::call_logged("the waker of a `Reserve`", || limit.close()).is_none() {}
        }
    }

    /// As [`Level::close_queued`].
    pub(super) fn close_queued(&self, most: usize) -> Vec<Arc<dyn Runnable>> {
        self.all().fold(Vec::new(), |mut closed, level| {
            let reason = self.lane.reason_for_jobs();
            closed.append(&mut level.close_queued(most - closed.len(), reason));
            closed
        })
    }

    /// Shuts the workers down, and the watch. May block for a moment, so only the control
    /// thread calls it.
    pub(super) fn shutdown_workers(&self) {
        self.lane.io_watch.stop();
        self.all().for_each(|level| level.shutdown());
    }

    /// Whether the lane is closed and all threads but so many have ended.
    pub(super) fn is_over_except(&self, n: usize) -> bool {
        let is_shut_down = self.all().all(|level| level.is_shut_down());
        self.lane.is_closed() && is_shut_down && self.lane.alive.load(SeqCst) == n
    }
}
