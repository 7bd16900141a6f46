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

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use stallwatch::{Entered, Name};
use tokio::sync::Semaphore;

use super::control::Message;
use super::counters::Counters;
use super::queue::RunQueue;
use super::{Lane, ThreadSettings, Workers, thread};
use crate::error::CloseReason;
use crate::metrics::call_sites::{Length, Sites};
use crate::metrics::timings::Timings;
use crate::os::interrupts;
use crate::priority::Priority;
use crate::shard;
use crate::sync::{AtomicUsize, Ordering::SeqCst, fence};
use crate::task::{Event, RegistryKey, Run, Schedule};

pub(super) struct LevelState {
    pub(super) queue: RunQueue,
    /// The permits, if the queue has a limit.
    pub(super) limit: Option<Arc<Semaphore>>,
    pub(super) queue_limit: Option<usize>,
    pub(super) counters: Counters,
    pub(super) sites: Sites,
    /// How many of its threads run steps that are not known to be short (`short_first.rs`).
    pub(super) long_steps: AtomicUsize,
    /// How many of its jobs run on threads of `High`.
    pub(super) helped: AtomicUsize,
    /// Not set before the threads have started, in [`Builder::build`](crate::Builder::build).
    pub(super) workers: OnceLock<Arc<dyn Workers>>,
}

impl LevelState {
    pub(super) fn new(settings: &ThreadSettings, queue_limit: Option<usize>) -> Self {
        Self {
            queue: RunQueue::new(),
            limit: queue_limit.map(|jobs| Arc::new(Semaphore::new(jobs))),
            queue_limit,
            counters: Counters::new(settings),
            sites: Sites::new(settings.has_histograms),
            long_steps: AtomicUsize::new(0),
            helped: AtomicUsize::new(0),
            workers: OnceLock::new(),
        }
    }

    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(super) fn tokio_tasks(&self) -> usize {
        self.workers
            .get()
            .map_or(0, |workers| workers.tokio_tasks())
    }

    /// Closes all queued jobs, which resolves their tasks. The caller then drops their
    /// work ([`Lane::discard`]).
    pub(super) fn close_queued(&self, cause: CloseReason) -> Vec<Arc<dyn Run>> {
        let popped = std::iter::from_fn(|| self.queue.pop());
        let jobs: Vec<_> = popped.map(|(job, _)| job).collect();
        for job in &jobs {
            job.close(cause);
        }
        jobs
    }
}

/// A lane at one of its priorities, and the call site of what is submitted. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Level {
    lane: Arc<Lane>,
    priority: Priority,
    /// [`Name::OTHER`] if not known: then it is the caller of the method that submits.
    pub(super) site: Name,
    /// What is submitted needs no permit of a limited queue.
    is_unlimited: bool,
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

    pub(crate) fn with_priority(&self, priority: Priority) -> Self {
        Self {
            priority,
            ..self.clone()
        }
    }

    pub(crate) fn without_limit(&self) -> Self {
        Self {
            is_unlimited: true,
            ..self.clone()
        }
    }

    pub(crate) fn is_unlimited(&self) -> bool {
        self.is_unlimited
    }

    /// The same level for what is submitted under that name, or from that place.
    pub(crate) fn at(&self, site: Name) -> Self {
        Self {
            site,
            ..self.clone()
        }
    }

    /// The same level for what the caller submits, unless the site is known.
    #[track_caller]
    pub(crate) fn at_caller(&self) -> Self {
        self.at(self.site_or_caller())
    }

    /// The level's own site, if it has one.
    #[track_caller]
    pub(crate) fn site_or_caller(&self) -> Name {
        match self.site {
            Name::OTHER => Name::caller(),
            own => own,
        }
    }

    pub(crate) fn lane(&self) -> &Arc<Lane> {
        &self.lane
    }

    pub(crate) fn priority(&self) -> Priority {
        self.priority
    }

    pub(super) fn state(&self) -> &LevelState {
        self.lane.level_state(self.priority)
    }

    /// `None` if the queue has no limit.
    pub(crate) fn limit(&self) -> Option<&Arc<Semaphore>> {
        self.state().limit.as_ref()
    }

    /// `None` before the threads have started.
    pub(crate) fn workers(&self) -> Option<&dyn Workers> {
        self.state().workers.get().map(|workers| &**workers)
    }

    pub(crate) fn queued(&self) -> usize {
        self.state().queue.len()
    }

    /// Whether there is a job for its workers.
    pub(crate) fn has_queued(&self) -> bool {
        self.state().has_queued() || self.has_others_short()
    }

    /// Call after a push. `is_short`: it went to the short ones.
    pub(super) fn pushed(&self, is_short: bool) {
        // Pairs with a worker that parks or becomes inactive, with `start`, and with
        // `Lane::close`. Each of them changes its own word, and the queue is checked
        // after that.
        fence(SeqCst);
        if let Some(workers) = self.workers() {
            workers.notify(self);
        }
        if is_short && self.is_stuck() {
            self.call_for_help();
        }
        interrupts::note_work();
        self.close_if_late();
    }

    /// Call after a push and a fence: the lane may have closed its queue before.
    fn close_if_late(&self) {
        if self.lane.is_closed() && self.lane.send_control(Message::CloseQueued).is_err() {
            // The control thread has ended. It has not seen the jobs that are in the
            // queue now.
            self.lane.reap_queued();
        }
    }

    /// Starts the threads, once, and waits until they are ready.
    ///
    /// The new threads inherit the nice value of the calling thread.
    pub(crate) fn start(&self) -> io::Result<()> {
        let workers = (self.lane.settings.start)(self)?;
        let workers = self.state().workers.get_or_init(|| workers);
        // Pairs with the fence in `enqueue`: the workers are published before the queue
        // is checked.
        fence(SeqCst);
        workers.notify_all(self);
        // A worker that has not parked yet takes a library's task without being unparked.
        interrupts::note_work();
        if self.lane.is_closed() {
            // The control thread may have shut the workers down before these were
            // published.
            workers.shutdown();
        }
        Ok(())
    }
}

impl Schedule for Level {
    fn is_closed(&self) -> bool {
        self.lane.is_closed()
    }

    fn enqueue(&self, job: Arc<dyn Run>) {
        let is_short = self.push(job);
        self.pushed(is_short);
    }

    fn register(&self, job: Arc<dyn Run>) -> RegistryKey {
        self.lane.registry.insert(job)
    }

    fn unregister(&self, key: RegistryKey) {
        self.lane.registry.remove(key);
    }

    #[inline]
    fn enter_step(&self, is_closure: bool, deadline: Option<Instant>) -> Option<Entered> {
        if !stallwatch::is_watched() {
            return None;
        }
        self.enter_watched(is_closure, deadline)
    }

    fn is_own_worker(&self) -> bool {
        thread::is_worker_of(&self.lane)
    }

    fn io(&self) -> Option<&tokio::runtime::Handle> {
        Some(self.lane.io.handle())
    }

    fn count(&self, event: Event) {
        self.state().counters.count(event);
    }

    fn submitted(&self) {
        let (state, thread) = (self.state(), shard::number());
        state.counters.count_from(thread, Event::Submitted);
        state.sites.submitted(self.site, thread);
    }

    fn site(&self) -> Name {
        self.site
    }

    fn length(&self) -> Length {
        self.length_of_site()
    }

    fn count_lost(&self) {
        self.lane.count_lost();
    }

    fn timings(&self) -> Option<&Timings> {
        self.state().counters.timings.as_deref()
    }
}
