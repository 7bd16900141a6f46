//! One priority of a CPU lane: a queue, and the threads that serve it.
//!
//! The path of a job: [`Level::enqueue`] pushes it and gives the threads a
//! kick; one of them takes it out and calls [`Level::run`]. A future that is not
//! ready rests in no queue; the lane's registry of suspended jobs knows it, so
//! that a shutdown finds it. Its waker calls [`Level::reschedule`].
//!
//! The threads start with the first job: `opening.rs`.

use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::Lane;
use super::books::Books;
use super::brisk::Briskness;
use super::gate::Gate;
use super::opening::{Opening, Pushed};
use super::queue::RunQueue;
use super::timings::Timings;
use crate::backend::{Backend, Threads};
use crate::job::state::Cause;
use crate::job::{After, Run};
use crate::panics;
use crate::priority::Priority;
use crate::warden::Order;

pub(super) struct State {
    queue: RunQueue,
    /// If the queue has a limit.
    gate: Option<Gate>,
    books: Books,
    timings: Timings,
    briskness: Briskness,
    opening: Opening,
    starting: Mutex<()>,
    threads: OnceLock<Threads>,
}

impl State {
    pub(super) fn new(threads: usize, queue_limit: Option<usize>) -> Self {
        Self {
            queue: RunQueue::new(),
            gate: queue_limit.map(Gate::new),
            books: Books::new(threads),
            timings: Timings::new(),
            briskness: Briskness::new(),
            opening: Opening::new(),
            starting: Mutex::new(()),
            threads: OnceLock::new(),
        }
    }

    pub(super) fn busy_threads(&self) -> usize {
        self.books.busy_threads()
    }

    pub(super) fn gate(&self) -> Option<&Gate> {
        self.gate.as_ref()
    }

    pub(super) fn threads(&self) -> Option<&Threads> {
        self.threads.get()
    }

    pub(super) fn pop(&self) -> Option<Arc<dyn Run>> {
        self.queue.pop()
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

    pub(crate) fn briskness(&self) -> &Briskness {
        &self.state().briskness
    }

    /// None if the queue has no limit.
    pub(crate) fn gate(&self) -> Option<&Gate> {
        self.state().gate()
    }

    pub(crate) fn books(&self) -> &Books {
        &self.state().books
    }

    pub(crate) fn timings(&self) -> &Timings {
        &self.state().timings
    }

    /// None before the first use.
    pub(crate) fn threads(&self) -> Option<&Threads> {
        self.state().threads()
    }

    pub(crate) fn enqueue(&self, job: Arc<dyn Run>) {
        self.state().queue.push(job);
        self.pushed();
    }

    fn pushed(&self) {
        match self.state().opening.pushed() {
            Pushed::Kick => {
                let threads = self.threads();
                threads.expect("they are set before it says so").kick(self);
            }
            Pushed::Ask => {
                // An error means that the lane is closed: see below.
                let _ = self.lane.tell_warden(Order::Start(self.priority));
            }
            Pushed::Rest => {}
        }
        // Against `Lane::close` (see there); `Opening::pushed` had the fence that
        // it takes.
        if self.lane.is_closed() && self.lane.tell_warden(Order::Sweep).is_err() {
            // The warden has closed everything and gone; what is in the queue
            // now came after its last look.
            self.lane.sweep_queues();
        }
    }

    /// A suspended job has work to do again (or is to be discarded).
    pub(crate) fn reschedule(&self, job: Arc<dyn Run>) {
        match self.lane.settings.backend {
            Backend::Runtime => Self::wake_driver(&*job),
            Backend::Rayon => self.enqueue(job),
        }
    }

    fn wake_driver(job: &dyn Run) {
        if let Some(link) = job.link() {
            link.driver.wake();
        }
    }

    pub(crate) fn has_queued(&self) -> bool {
        !self.state().queue.is_empty()
    }

    pub(crate) fn pop(&self) -> Option<Arc<dyn Run>> {
        self.state().pop()
    }

    /// Queues a job that was woken in its own step; if it gave way, behind those
    /// that have not run yet. Nobody is told: the caller looks for the next job
    /// itself, or sees to it. (Nor does it look whether the lane is closed: a
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
    pub(crate) fn pause_for_quota(&self, job: &dyn Run) {
        if let Some(pacer) = &self.lane.pacer {
            let is_over = || self.lane.is_closed() || job.has_ended();
            if !is_over() {
                pacer.pause(self.priority, is_over);
            }
        }
    }

    /// Runs one step of a job that came out of a queue. What that leaves to be
    /// done is the caller's to do, and soon. The answer is also how long it took,
    /// if that was measured.
    pub(crate) fn step(&self, job: Arc<dyn Run>, times: bool) -> (After, Option<Duration>) {
        // The job catches what its work panics with. This is for the rest: the
        // subscriber, and what goes with its last reference.
        let step = || {
            if self.lane.is_closed() {
                job.close(Cause::ShutDown);
                job.discard();
                After::Nothing
            } else {
                job.run()
            }
        };
        let State { books, timings, .. } = self.state();
        let timed = || timings.step(times, || panics::call_logged(super::LEFT_BEHIND, step));
        let (after, took) = books.busy(timed);
        (after.unwrap_or(After::Nothing), took)
    }

    /// Starts the threads, if they are not there and the lane is not closed,
    /// and waits until they are ready. The new ones inherit the weight of the
    /// calling one.
    pub(crate) fn start(&self) -> io::Result<()> {
        let _one_at_a_time = self.state().starting.lock();
        if self.lane.is_closed() || self.threads().is_some() {
            return Ok(());
        }
        let opening = &self.state().opening;
        // A start hook may submit a job, which need not ask.
        opening.mark_asked();
        let threads = Threads::start(self)?;
        let threads = self.state().threads.get_or_init(|| threads);
        opening.opened();
        for _ in 0..self.state().queue.len() {
            threads.kick(self);
        }
        if self.lane.is_closed() {
            // The warden may have looked before they were there.
            threads.retire();
        }
        Ok(())
    }

    /// There are no threads to be had: ends what waits for them. Its
    /// destructors are still to run.
    pub(crate) fn give_up(&self) -> Vec<Arc<dyn Run>> {
        self.state().opening.failed();
        let jobs: Vec<_> = std::iter::from_fn(|| self.pop()).collect();
        for job in &jobs {
            job.close(Cause::NoThreads);
        }
        self.lane.report_lost();
        jobs
    }
}
