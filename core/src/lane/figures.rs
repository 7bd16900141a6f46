//! What a level measures: its counters, its call sites, and a worker's share of both.

use super::{Level, thread};
use crate::metrics::Metrics;
use crate::metrics::call_sites::{Sites, Stamp, Steps};
use crate::metrics::held::Held;
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
            steps: Steps::new(),
            timings: state.counters.timings.as_deref(),
            counted_by: None,
            yielded: false,
        }
    }
}
