//! What a level measures: its counters, its call sites, and a worker's share of both.

use std::sync::atomic::AtomicU64;

use super::{Level, thread};
use crate::metrics::clock::now;
use crate::metrics::{Held, Metrics};
use crate::priority::Priority;
use crate::shard;
use crate::task::{Page, Worker};

impl Level {
    pub(crate) fn metrics(&self) -> Metrics {
        let state = self.state();
        let mut metrics = state.counters.read();
        metrics.threads = self.lane().settings.threads as u64;
        metrics.tokio_tasks = state.tokio_tasks() as u64;
        if let (Some(jobs), Some(limit)) = (state.queue_limit, &state.limit) {
            metrics.queue_limit = Some(jobs as u64);
            metrics.permits_in_use = jobs.saturating_sub(limit.available_permits()) as u64;
        }
        metrics
    }

    /// What the bridges of this priority add to.
    pub(crate) fn held(&self) -> Held {
        self.state().counters.held.clone()
    }

    /// Counts a closure that is no job as one. The returned function runs it, and times it so.
    pub(crate) fn timed(&self, mut f: impl FnMut()) -> impl FnMut() {
        let sites = &self.state().sites;
        sites.submitted(self.site, shard::number());
        let queued_at = AtomicU64::new(now());
        move || {
            let sample = sites.begin(self.site, &queued_at);
            f();
            if let Some(sample) = sample {
                sample.end();
            }
        }
    }

    /// What a thread that runs jobs of this level passes to them. `index`: if it is a worker.
    pub(crate) fn worker(&self, index: Option<usize>) -> Worker<'_> {
        self.worker_on(self.state().counters.page(index))
    }

    /// The same for this thread, which is a worker of `High`, and pauses as one for the CPU quota.
    pub(super) fn helper(&self) -> Worker<'_> {
        let page = self.state().counters.helpers_page(thread::worker());
        Worker {
            priority: Priority::High,
            ..self.worker_on(page)
        }
    }

    fn worker_on<'a>(&'a self, (page, shares_page): (&'a Page, bool)) -> Worker<'a> {
        let state = self.state();
        Worker {
            priority: self.priority(),
            closed: &self.lane().closed,
            page,
            shares_page,
            throttle: self.lane().throttle.as_ref(),
            sites: &state.sites,
            timings: state.counters.timings.as_deref(),
            counted_by: None,
            yielded: false,
        }
    }
}
