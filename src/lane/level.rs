//! One priority of a CPU lane: a queue, and the threads that serve it.
//!
//! The path of a job: [`Level::enqueue`] pushes it and gives the threads a
//! kick; one of them takes it out and calls [`Level::run`]. A future that is not
//! ready rests in no queue; the lane's registry of suspended jobs knows it, so
//! that a shutdown finds it. Its waker calls [`Level::enqueue`] again.
//!
//! **The threads start with the first job.** A submitter must not wait for threads
//! to start, since it may be an I/O worker. It pushes the job, finds no threads and
//! tells the warden; the warden has them started and, when they are there, sees that
//! one comes for each job in the queue. If there are none to be had, it closes what
//! is queued. A push that either misses is followed by a message of its own, which
//! the warden reads later. So all of it happens in the order of the warden's
//! mailbox, and no job is forgotten.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::Lane;
use super::counters::Counters;
use super::queue::RunQueue;
use super::suspended::Suspended;
use crate::backend::Threads;
use crate::error::Cause;
use crate::job::Run;
use crate::priority::Priority;
use crate::sync::{Ordering::SeqCst, fence};
use crate::warden::Order;

pub(super) struct State {
    pub(super) queue: RunQueue,
    pub(super) suspended: Suspended,
    /// The permits of a queue that has a limit.
    pub(super) limit: Option<Arc<Semaphore>>,
    pub(super) counters: Counters,
    starting: Mutex<()>,
    /// None before the first use.
    pub(super) threads: OnceLock<Threads>,
}

impl State {
    pub(super) fn new(threads: usize, queue_limit: Option<usize>) -> Self {
        Self {
            queue: RunQueue::new(),
            suspended: Suspended::default(),
            limit: queue_limit.map(|jobs| Arc::new(Semaphore::new(jobs))),
            counters: Counters::new(threads),
            starting: Mutex::new(()),
            threads: OnceLock::new(),
        }
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

    fn state(&self) -> &State {
        self.lane.state_of(self.priority)
    }

    /// None if the queue has no limit.
    pub(crate) fn limit(&self) -> Option<&Arc<Semaphore>> {
        self.state().limit.as_ref()
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.state().counters
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn timings(&self) -> &super::Timings {
        &self.state().counters.timings
    }

    /// None on `Backend::Runtime`, where Tokio has them.
    pub(crate) fn suspended(&self) -> Option<&Suspended> {
        let is_tokios = self.lane.awaited.is_some();
        (!is_tokios).then(|| &self.state().suspended)
    }

    /// None before the first use.
    pub(crate) fn threads(&self) -> Option<&Threads> {
        self.state().threads.get()
    }

    /// The answer is the job's Tokio task, if it is one.
    pub(crate) fn submit(&self, job: Arc<dyn Run>) -> Option<JoinHandle<()>> {
        match self.threads() {
            // What was queued before the threads were there goes first.
            Some(Threads::Runtime(runtime)) if !self.has_queued() => Some(runtime.spawn(self, job)),
            _ => {
                self.enqueue(job);
                None
            }
        }
    }

    pub(crate) fn enqueue(&self, job: Arc<dyn Run>) {
        self.state().queue.push(job);
        // Against a worker that goes idle, the start of the threads, and
        // `Lane::close`: each changes its own word and then looks at the queue.
        fence(SeqCst);
        match self.threads() {
            Some(threads) => threads.kick(self),
            // An error means that the lane is closed: see below.
            None => drop(self.lane.tell_warden(Order::Start(self.priority))),
        }
        if self.lane.is_closed() && self.lane.tell_warden(Order::Sweep).is_err() {
            // The warden has closed everything and gone; what is in the queue
            // now came after its last look.
            self.lane.sweep_queues();
        }
    }

    /// A suspended job was closed: it goes to the lane's threads, to be discarded.
    pub(crate) fn send_closed(&self, job: Arc<dyn Run>) {
        match (&self.lane.awaited, job.link()) {
            (Some(_), Some(link)) => link.driver.wake(),
            _ => self.enqueue(job),
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
    pub(crate) fn put_back(&self, job: Arc<dyn Run>, gave_way: bool) {
        if gave_way {
            self.state().queue.push_behind(job);
        } else {
            self.state().queue.push(job);
        }
    }

    /// Before a step of `job`: waits while the process is about to use up its
    /// quota, unless there will be no step.
    pub(crate) fn pause_for_quota(&self, job: &impl Run) {
        if let Some(pacer) = &self.lane.pacer {
            let is_over = || self.lane.is_closed() || job.has_ended();
            if !is_over() {
                pacer.pause(self.priority, is_over);
            }
        }
    }

    /// Starts the threads, if they are not there and the lane is not closed,
    /// and waits until they are ready. The new ones inherit the weight of the
    /// calling one.
    pub(crate) fn start(&self) -> io::Result<()> {
        let starting = self.state().starting.lock();
        let _one_at_a_time = starting.unwrap_or_else(PoisonError::into_inner);
        if self.lane.is_closed() || self.threads().is_some() {
            return Ok(());
        }
        let threads = Threads::start(self)?;
        let threads = self.state().threads.get_or_init(|| threads);
        // Against `enqueue`.
        fence(SeqCst);
        self.kick_for_all();
        if self.lane.is_closed() {
            // The warden may have looked before they were there.
            threads.retire();
        }
        Ok(())
    }

    /// Sees that a worker comes for each job in the queue.
    pub(crate) fn kick_for_all(&self) {
        match self.threads() {
            // A worker that finds a job wakes the next.
            Some(threads @ Threads::Rayon(_)) => threads.kick(self),
            Some(threads @ Threads::Runtime(_)) => {
                while self.has_queued() {
                    threads.kick(self);
                }
            }
            None => {}
        }
    }

    /// There are no threads to be had: closes what waits for them. Its
    /// destructors are still to run.
    pub(crate) fn give_up(&self) -> Vec<Arc<dyn Run>> {
        let jobs: Vec<_> = std::iter::from_fn(|| self.pop()).collect();
        for job in &jobs {
            job.close(Cause::NoThreads);
        }
        self.lane.report_lost();
        jobs
    }
}
