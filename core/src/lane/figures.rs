//! What a level measures: its counters, its call sites, and a worker's share of both.

use std::sync::atomic::Ordering::Relaxed;

use super::Level;
use crate::metrics::Metrics;
use crate::metrics::call_sites::{Sites, Stamp, Steps};
use crate::metrics::held::Held;
use crate::shard;
use crate::task::Worker;

impl Level {
    pub(crate) fn metrics(&self) -> Metrics {
        let state = self.state();
        let mut metrics = state.counters.read(&self.lane().io_watch);
        metrics.threads = self.lane().settings.threads as u64;
        metrics.tokio_tasks = state.tokio_tasks() as u64;
        // Below zero: a poll has ended before the end of its job has added it.
        let of_ended = state.threads_of_ended_jobs.load(Relaxed);
        metrics.threads_of_ended_jobs = of_ended.max(0) as u64;
        if let (Some(jobs), Some(limit)) = (state.queue_limit, &state.limit) {
            metrics.queue_limit = Some(jobs as u64);
            metrics.permits_in_use = jobs.saturating_sub(limit.available_permits()) as u64;
        }
        metrics
    }

    pub(crate) fn add_threads_of_ended_jobs(&self, change: isize) {
        let threads = &self.state().threads_of_ended_jobs;
        threads.fetch_add(change, Relaxed);
    }

    /// What the bridges of this priority add to.
    pub(crate) fn held(&self) -> Held {
        self.state().counters.held.clone()
    }

    /// Runs a closure that is no job, but is to be timed as one that was queued with that stamp.
    pub(crate) fn timed<R>(&self, queued: Stamp, f: impl FnOnce() -> R) -> R {
        let sample = Sites::begin_decided(queued);
        let result = f();
        if let Some(sample) = sample {
            self.state().sites.end(self.site, &sample);
        }
        result
    }

    /// The stamp of a closure for [`timed`](Self::timed), which begins to wait now.
    pub(crate) fn installs(&self) -> Stamp {
        self.state().sites.submitted(self.site, shard::number())
    }

    /// What a thread that runs jobs of this level passes to them. `index`: if it is a worker.
    pub(crate) fn worker(&self, index: Option<usize>) -> Worker<'_> {
        let state = self.state();
        let (page, shares_page) = state.counters.page(index);
        Worker {
            priority: self.priority(),
            closed: &self.lane().closed,
            page,
            shares_page,
            throttle: self.lane().throttle.as_ref(),
            sites: &state.sites,
            steps: Steps::new(),
            timings: state.counters.timings.as_deref(),
            yielded: false,
        }
    }
}
