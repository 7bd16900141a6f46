//! One priority of a CPU lane: a queue, and the threads that serve it.
//!
//! The path of a job: [`Level::enqueue`] pushes it and gives the threads a
//! notification; one of them takes it out and calls [`Level::run`]. A future that is not
//! ready rests in no queue; the lane's registry of suspended jobs knows it, so
//! that a shutdown finds it. Its waker calls [`Level::enqueue`] again.
//!
//! **The threads start with the first job.** A submitter must not wait for threads
//! to start, since it may be an I/O worker. It pushes the job, finds no threads and
//! tells the control thread; the control thread has them started and, when they are there, sees that
//! one comes for each job in the queue. If there are none to be had, it closes what
//! is queued. A push that either misses is followed by a message of its own, which
//! the control thread reads later. So all of it happens in the order of the control thread's
//! channel, and no job is forgotten.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::control::Message;
use super::counters::Counters;
use super::inherit::{self, Inherited};
use super::queue::RunQueue;
use super::{Lane, Workers, thread};
use crate::backend::Backend;
use crate::error::CloseReason;
use crate::metrics::Metrics;
#[cfg(feature = "metrics")]
use crate::metrics::timings::Timings;
use crate::priority::Priority;
use crate::sync::{Ordering::SeqCst, fence};
use crate::task::{Event, QueuePermit, RegistryKey, Run, Schedule};

pub(super) struct LevelState {
    pub(super) queue: RunQueue,
    /// The permits of a queue that has a limit.
    pub(super) limit: Option<Arc<Semaphore>>,
    pub(super) counters: Counters,
    starting: Mutex<()>,
    /// None before the first use.
    pub(super) workers: OnceLock<Arc<dyn Workers>>,
}

impl LevelState {
    pub(super) fn new(threads: usize, queue_limit: Option<usize>) -> Self {
        Self {
            queue: RunQueue::new(),
            limit: queue_limit.map(|jobs| Arc::new(Semaphore::new(jobs))),
            counters: Counters::new(threads),
            starting: Mutex::new(()),
            workers: OnceLock::new(),
        }
    }

    /// Closes all that is queued and tells the awaiters. The jobs' destructors are
    /// still to run.
    pub(super) fn close_queued(&self, cause: CloseReason) -> Vec<Arc<dyn Run>> {
        let jobs: Vec<_> = std::iter::from_fn(|| self.queue.pop()).collect();
        for job in &jobs {
            job.close(cause);
        }
        jobs
    }
}

/// A lane, at one of its priorities; cheap to clone.
#[derive(Clone)]
pub(crate) struct Level {
    lane: Arc<Lane>,
    priority: Priority,
}

impl Level {
    pub(crate) fn new(lane: Arc<Lane>, priority: Priority) -> Self {
        Self { lane, priority }
    }

    pub(crate) fn lane(&self) -> &Arc<Lane> {
        &self.lane
    }

    pub(crate) fn priority(&self) -> Priority {
        self.priority
    }

    fn state(&self) -> &LevelState {
        self.lane.level_state(self.priority)
    }

    /// None if the queue has no limit.
    pub(crate) fn limit(&self) -> Option<&Arc<Semaphore>> {
        self.state().limit.as_ref()
    }

    pub(crate) fn metrics(&self) -> Metrics {
        self.state().counters.read()
    }

    /// None before the first use.
    pub(crate) fn workers(&self) -> Option<&dyn Workers> {
        self.state().workers.get().map(|workers| &**workers)
    }

    /// The answer is the job's Tokio task, if it is one.
    pub(crate) fn submit(&self, job: Arc<dyn Run>) -> Option<JoinHandle<()>> {
        match self.workers() {
            Some(workers) => workers.submit(self, job),
            None => {
                self.enqueue(job);
                None
            }
        }
    }

    pub(crate) fn has_queued(&self) -> bool {
        !self.state().queue.is_empty()
    }

    pub(crate) fn pop(&self) -> Option<Arc<dyn Run>> {
        self.state().queue.pop()
    }

    /// Queues a job that was woken in its own step; if it gave way, behind those
    /// that have not run yet. It notifies no worker: the caller looks for the next
    /// job itself, or sees to it. (Nor does it look whether the lane is closed: a
    /// drainer goes on until it has found the queue empty.)
    pub(crate) fn put_back(&self, job: Arc<dyn Run>, yielded: bool) {
        if yielded {
            self.state().queue.push_behind(job);
        } else {
            self.state().queue.push(job);
        }
    }

    /// Starts the threads, if they are not there and the lane is not closed,
    /// and waits until they are ready. The new ones inherit the weight of the
    /// calling one.
    pub(crate) fn start(&self) -> io::Result<()> {
        let starting = self.state().starting.lock();
        let _one_at_a_time = starting.unwrap_or_else(PoisonError::into_inner);
        if self.lane.is_closed() || self.workers().is_some() {
            return Ok(());
        }
        let workers = (self.lane.settings.start)(self)?;
        let workers = self.state().workers.get_or_init(|| workers);
        // Against `enqueue`.
        fence(SeqCst);
        workers.notify_all(self);
        if self.lane.is_closed() {
            // The control thread may have looked before they were there.
            workers.shutdown();
        }
        Ok(())
    }

    /// There are no threads to be had: closes what waits for them. Its
    /// destructors are still to run.
    pub(super) fn close_unserved(&self) -> Vec<Arc<dyn Run>> {
        let jobs = self.state().close_queued(CloseReason::NoThreads);
        self.lane.report_lost();
        jobs
    }
}

impl Schedule for Level {
    fn is_closed(&self) -> bool {
        self.lane.is_closed()
    }

    fn enqueue(&self, job: Arc<dyn Run>) {
        self.state().queue.push(job);
        // Against a worker that goes idle, the start of the threads, and
        // `Lane::close`: each changes its own word and then looks at the queue.
        fence(SeqCst);
        match self.workers() {
            Some(workers) => workers.notify(self),
            // An error means that the lane is closed: see below.
            None => drop(self.lane.send_control(Message::Start(self.priority))),
        }
        if self.lane.is_closed() && self.lane.send_control(Message::CloseQueued).is_err() {
            // The control thread has closed everything and gone; what is in the queue
            // now came after its last look.
            self.lane.reap_queued();
        }
    }

    fn register(&self, job: Arc<dyn Run>) -> RegistryKey {
        self.lane.registry.insert(job)
    }

    fn unregister(&self, key: RegistryKey) {
        self.lane.registry.remove(key);
    }

    fn registers_awaited(&self) -> bool {
        // There, Tokio has the suspended ones.
        self.lane.settings.backend == Backend::Runtime
    }

    fn throttle(&self, is_over: impl Fn() -> bool) {
        if let Some(throttle) = &self.lane.throttle {
            if !is_over() {
                throttle.pause(self.priority, is_over);
            }
        }
    }

    fn lend(&self, permit: QueuePermit) -> impl Drop {
        inherit::enter(Inherited::By(permit))
    }

    fn is_own_worker(&self) -> bool {
        thread::is_worker_of(&self.lane)
    }

    fn count(&self, event: Event) {
        self.state().counters.count(event);
    }

    fn count_in_step(&self, event: Event) {
        self.state().counters.count_in_step(event);
    }

    fn count_lost(&self) {
        self.lane.count_lost();
    }

    #[cfg(feature = "metrics")]
    fn timings(&self) -> &Timings {
        &self.state().counters.timings
    }
}
