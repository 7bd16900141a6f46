//! One priority of a CPU lane: a queue, and the threads that serve it.
//!
//! **The path of a job.** [`Level::enqueue`] pushes the job and notifies the workers:
//! `pool/idle.rs` decides which one has to wake, and `pool/drain.rs` wakes it. A worker
//! pops the job and calls [`Run::run`]. A future that is not ready is suspended. It
//! is in no queue, but in the lane's registry, so that a shutdown finds it. Its waker
//! calls [`Level::enqueue`] again. (On `Backend::Runtime`, `pool/tokio.rs` wakes the
//! workers.)
//!
//! **The threads start when the lane is built.** A start hook of the user may submit jobs
//! before the threads are there. A submitter pushes and then looks for the workers;
//! [`Level::start`] publishes the workers and then notifies them for all that is queued.
//! Each has a `SeqCst` fence in between, so one of the two sees the other.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use giveway::Cores;
use stallwatch::{Entered, Name};
use tokio::sync::Semaphore;

use super::control::Message;
use super::queue::RunQueue;
use super::{Lane, ThreadSettings, Workers, thread};
use crate::error::CloseReason;
use crate::metrics::Metrics;
use crate::metrics::call_sites::{Length, Sites};
use crate::metrics::clock::now;
use crate::priority::Priority;
use crate::sync::{AtomicBool, Ordering::SeqCst, fence};
use crate::task::{Counters, OfThread, RegistryKey, Run, Schedule, Worker, thread_number};

pub(super) struct LevelState {
    pub(super) queue: RunQueue,
    /// If the queue has one: the number of jobs, and the permits.
    pub(super) limit: Option<(usize, Arc<Semaphore>)>,
    pub(super) counters: Counters,
    pub(super) sites: Sites,
    /// Of a level whose threads keep to different cores: where they run jobs.
    cores: Option<Cores>,
    /// Not set before the threads have started, in [`Builder::build`](crate::Builder::build).
    pub(super) workers: OnceLock<Arc<dyn Workers>>,
    /// These were told to end.
    is_shut_down: AtomicBool,
}

impl LevelState {
    pub(super) fn new(priority: Priority, settings: &ThreadSettings, limit: Option<usize>) -> Self {
        let keeps_apart = priority == Priority::High && settings.threads > 1;
        Self {
            cores: keeps_apart.then(Cores::new),
            queue: RunQueue::default(),
            limit: limit.map(|jobs| (jobs, Arc::new(Semaphore::new(jobs)))),
            counters: Counters::new(settings.threads, settings.has_histograms),
            sites: Sites::new(settings.has_histograms),
            workers: OnceLock::new(),
            is_shut_down: AtomicBool::new(false),
        }
    }

    pub(super) fn tokio_tasks(&self) -> usize {
        let workers = self.workers.get();
        workers.map_or(0, |workers| workers.tokio_tasks())
    }

    /// Any number of times. May block for a moment.
    pub(super) fn shutdown(&self) {
        if let Some(workers) = self.workers.get() {
            // First: the control thread looks at it when one of their threads has ended.
            self.is_shut_down.store(true, SeqCst);
            workers.shutdown();
        }
    }

    /// Whether it has no workers that were not told to end.
    pub(super) fn is_shut_down(&self) -> bool {
        self.workers.get().is_none() || self.is_shut_down.load(SeqCst)
    }
}

/// A lane at one of its priorities, and the call site of what is submitted. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Level {
    pub(crate) lane: Arc<Lane>,
    pub(crate) priority: Priority,
    /// [`Name::OTHER`] if not known: then it is the caller of the method that submits.
    pub(crate) site: Name,
    /// What is submitted needs no permit of a limited queue.
    pub(crate) is_unlimited: bool,
}

impl Level {
    pub(crate) fn new(lane: Arc<Lane>, priority: Priority) -> Self {
        Self {
            lane,
            priority,
            site: Name::OTHER,
            is_unlimited: false,
        }
    }

    /// The same level for what the caller submits, unless the site is known.
    #[track_caller]
    pub(crate) fn at_caller(&self) -> Self {
        Self {
            site: self.site_or_caller(),
            ..self.clone()
        }
    }

    /// The level's own site, if it has one.
    #[track_caller]
    pub(crate) fn site_or_caller(&self) -> Name {
        match self.site {
            Name::OTHER => Name::caller(),
            own => own,
        }
    }

    pub(super) fn state(&self) -> &LevelState {
        self.lane.level_state(self.priority)
    }

    /// `None` if the queue has no limit.
    pub(crate) fn limit(&self) -> Option<&Arc<Semaphore>> {
        Some(&self.state().limit.as_ref()?.1)
    }

    /// `None` before the threads have started.
    pub(crate) fn workers(&self) -> Option<&dyn Workers> {
        self.state().workers.get().map(|workers| &**workers)
    }

    pub(crate) fn queue(&self) -> &RunQueue {
        &self.state().queue
    }

    /// Whether there is a job for its workers.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue().is_empty()
    }

    /// What a thread that runs jobs of this level passes to them. `index`: if it is a worker.
    pub(super) fn worker(&self, index: Option<usize>, own: OfThread) -> Worker<'_> {
        let state = self.state();
        let (page, shares_page) = state.counters.page(index);
        Worker {
            priority: self.priority,
            closed: &self.lane.closed,
            throttle: self.lane.throttle.as_ref(),
            page,
            shares_page,
            timings: state.counters.timings.as_deref(),
            sites: &state.sites,
            place: state.cores.as_ref().map(Cores::place),
            own,
            yielded: false,
        }
    }

    pub(crate) fn metrics(&self) -> Metrics {
        let state = self.state();
        let mut metrics = state.counters.read();
        metrics.tokio_tasks = state.tokio_tasks() as u64;
        if let Some((jobs, limit)) = &state.limit {
            metrics.queue_limit = Some(*jobs as u64);
            metrics.permits_in_use = jobs.saturating_sub(limit.available_permits()) as u64;
        }
        metrics
    }

    /// Counts a closure that is no job as one. The returned function runs it, and times it so.
    pub(crate) fn timed(&self, mut f: impl FnMut()) -> impl FnMut() {
        let sites = &self.state().sites;
        let nth = sites.submitted(self.site, thread_number());
        let queued_at = now();
        move || {
            let sample = sites.begin(self.site, nth, queued_at);
            f();
            if let Some(sample) = sample {
                sample.end();
            }
        }
    }

    /// Lets these threads, which are ready, serve it. Call it once.
    pub(crate) fn start(&self, workers: Arc<dyn Workers>) {
        let workers = self.state().workers.get_or_init(|| workers);
        // Pairs with the fence in `enqueue`: the workers are published before the queue
        // is checked.
        fence(SeqCst);
        workers.notify_all(self);
        if self.lane.is_closed() {
            // The control thread may have shut the workers down before these were
            // published.
            self.state().shutdown();
        }
    }
}

impl Schedule for Level {
    #[inline]
    fn end_of_jobs(&self) -> Option<CloseReason> {
        self.lane.is_closed().then(|| self.lane.end_of_jobs())
    }

    fn enqueue(&self, job: Arc<dyn Run>) {
        self.queue().push(job, self.is_short());
        // Pairs with a worker that parks or becomes inactive, with `start`, and with
        // `Lane::close`. Each of them changes its own word, and the queue is checked
        // after that.
        fence(SeqCst);
        if let Some(workers) = self.workers() {
            workers.notify(self);
        }
        // The lane may have closed its queue before the push.
        if self.lane.is_closed() && self.lane.send_control(Message::CloseQueued).is_err() {
            // The control thread has ended. It has not seen the jobs that are in the
            // queue now.
            self.lane.reap_queued();
        }
    }

    #[inline]
    fn is_short(&self) -> bool {
        let (state, settings) = (self.state(), &self.lane.settings);
        let is_sorted = self.priority == Priority::Normal && settings.short_jobs_first;
        is_sorted
            && match state.sites.length(self.site) {
                Length::Short => true,
                Length::Unknown => !state.queue.has_short(),
                Length::Long => false,
            }
    }

    fn register(&self, job: Arc<dyn Run>) -> RegistryKey {
        self.lane.registry.insert(job)
    }

    fn unregister(&self, key: RegistryKey) {
        self.lane.registry.remove(key);
    }

    #[inline]
    fn enter_step(&self, is_closure: bool, deadline: Option<Instant>) -> Option<Entered> {
        let entered = stallwatch::is_watched().then(|| self.enter_watched(is_closure, deadline));
        entered.flatten()
    }

    fn is_own_worker(&self) -> bool {
        thread::is_worker_of(&self.lane)
    }

    fn io(&self) -> Option<&tokio::runtime::Handle> {
        Some(&self.lane.io.handle)
    }

    fn counters(&self) -> &Counters {
        &self.state().counters
    }

    fn sites(&self) -> &Sites {
        &self.state().sites
    }

    fn site(&self) -> Name {
        self.site
    }

    fn count_lost(&self) {
        self.lane.lost.fetch_add(1, SeqCst);
    }
}
