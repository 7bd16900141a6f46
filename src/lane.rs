//! The CPU lane: one queue, its threads, its suspended jobs.
//!
//! The path of a job: [`Lane::enqueue`] pushes it and gives the backend a kick;
//! a thread of the backend calls [`Lane::run_next`] or, for a job it has
//! adopted, [`Lane::step`]. A future that is not ready rests in no queue; the
//! registry of suspended jobs knows it, so that a shutdown finds it. Its waker
//! calls [`Lane::reschedule`].
//!
//! How a lane closes, and why no job falls between: `close` sets `closed`, and
//! the warden (see `warden.rs`) then resolves every queued and suspended job.
//! Whoever pushes looks at `closed` *after* the push: either the warden's sweep
//! sees the job, or the pusher sees `closed` and asks for another sweep. A
//! runner looks at `closed` after it has paused a job (see `Job::pause`). A
//! running closure is nobody's to stop: its own end resolves it.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use crossbeam_utils::CachePadded;
use slab::Slab;

use crate::backend::Backend;
use crate::context;
use crate::io::lane::IoLane;
use crate::job::Run;
use crate::job::state::Cause;
use crate::panics;
use crate::sync::{AtomicBool, AtomicUsize, Ordering::SeqCst, Queue, fence};
use crate::warden::Order;

const LEFT_BEHIND: &str = "what a job left behind";

pub(crate) struct Lane {
    queue: Queue<Arc<dyn Run>>,
    pub(crate) suspended: Suspended,
    closed: AtomicBool,
    /// Jobs in a step, by worker: no two workers write the same cache line.
    running: Box<[CachePadded<AtomicUsize>]>,
    /// Threads of the backend that have started and not yet ended.
    alive: AtomicUsize,
    /// Set once, right after the lane was made: the threads need the lane.
    backend: OnceLock<Backend>,
    warden: Sender<Order>,
    pub(crate) io: IoLane,
}

impl Lane {
    pub(crate) fn new(threads: usize, io: IoLane, warden: Sender<Order>) -> Arc<Self> {
        Arc::new(Self {
            queue: Queue::new(),
            suspended: Suspended::default(),
            closed: AtomicBool::new(false),
            running: (0..threads).map(|_| CachePadded::default()).collect(),
            alive: AtomicUsize::new(0),
            backend: OnceLock::new(),
            warden,
            io,
        })
    }

    pub(crate) fn set_backend(self: &Arc<Self>, backend: Backend) {
        let backend = self.backend.get_or_init(|| backend);
        // A thread's start hook may have submitted something before.
        for _ in 0..self.queue.len() {
            backend.kick(self);
        }
    }

    pub(crate) fn backend(&self) -> Option<&Backend> {
        self.backend.get()
    }

    pub(crate) fn threads(&self) -> usize {
        self.running.len()
    }

    /// Why a job may not be submitted now, if so.
    pub(crate) fn refusal(&self) -> Option<Cause> {
        if self.is_closed() {
            Some(Cause::ShutDown)
        } else if self.io.is_gone() {
            Some(Cause::IoRuntimeGone)
        } else {
            None
        }
    }

    pub(crate) fn enqueue(self: &Arc<Self>, job: Arc<dyn Run>) {
        self.queue.push(job);
        if let Some(backend) = self.backend() {
            backend.kick(self);
        }
        fence(SeqCst);
        if self.is_closed() && self.tell_warden(Order::Sweep).is_err() {
            // The warden has closed everything and gone; what is in the queue
            // now came after its last look.
            self.sweep_queue();
        }
    }

    /// A suspended job has work to do again (or is to be discarded).
    pub(crate) fn reschedule(self: &Arc<Self>, job: Arc<dyn Run>) {
        match self.backend() {
            Some(Backend::Runtime(_)) => job.link().driver.wake(),
            _ => self.enqueue(job),
        }
    }

    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(crate) fn pop(&self) -> Option<Arc<dyn Run>> {
        self.queue.pop()
    }

    /// Runs the oldest queued job for one step. False if there was none.
    pub(crate) fn run_next(&self) -> bool {
        match self.pop() {
            Some(job) => {
                self.step(job);
                true
            }
            None => false,
        }
    }

    /// Runs one step of a job that came out of a queue.
    pub(crate) fn step(&self, job: Arc<dyn Run>) {
        if self.is_closed() {
            job.close(Cause::ShutDown);
            job.discard();
            return;
        }
        let running = &self.running[context::worker_index() % self.running.len()];
        running.fetch_add(1, SeqCst);
        // The job catches what its work panics with. This is for the rest: the
        // subscriber and the wakers that go with the job's last reference.
        panics::run_hook(LEFT_BEHIND, move || job.run());
        running.fetch_sub(1, SeqCst);
    }

    pub(crate) fn running(&self) -> usize {
        self.running.iter().map(|n| n.load(SeqCst)).sum()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    /// Stops admission; the warden does the rest. Never blocks; may be called
    /// often and from anywhere.
    pub(crate) fn close(&self) {
        if !self.closed.swap(true, SeqCst) {
            // Against `State::pause` and `enqueue`, which look after a fence.
            fence(SeqCst);
            // An error means that the warden has gone, which it only does
            // after a close.
            let _ = self.tell_warden(Order::Shutdown);
        }
    }

    pub(crate) fn tell_warden(&self, order: Order) -> Result<(), Order> {
        self.warden.send(order).map_err(|unsent| unsent.0)
    }

    /// Closes all that is queued and tells the awaiters. The destructors of the
    /// user's are still to run ([`discard`](Self::discard)): one may block.
    pub(crate) fn close_queued(&self) -> Vec<Arc<dyn Run>> {
        let jobs: Vec<_> = std::iter::from_fn(|| self.pop()).collect();
        for job in &jobs {
            job.close(Cause::ShutDown);
        }
        jobs
    }

    /// The same for the suspended ones. A job in the registry may rest in the
    /// queue just as well: its waker may have been called.
    pub(crate) fn close_suspended(&self) -> Vec<Arc<dyn Run>> {
        let jobs = self.suspended.all();
        for job in &jobs {
            job.close(Cause::ShutDown);
        }
        jobs
    }

    /// Drops the work of jobs that were closed, here or by a cancel before.
    pub(crate) fn discard(jobs: Vec<Arc<dyn Run>>) {
        for job in jobs {
            // One that runs is its runner's.
            if job.has_ended() {
                panics::run_hook(LEFT_BEHIND, move || job.discard());
            }
        }
    }

    pub(crate) fn sweep_queue(&self) {
        Self::discard(self.close_queued());
    }

    pub(crate) fn thread_started(&self) {
        self.alive.fetch_add(1, SeqCst);
    }

    /// The last thing a thread of the lane does.
    pub(crate) fn thread_ended(&self) {
        self.alive.fetch_sub(1, SeqCst);
        let _ = self.tell_warden(Order::ThreadEnded);
    }

    pub(crate) fn threads_alive(&self) -> usize {
        self.alive.load(SeqCst)
    }
}

/// The futures that have been suspended at least once and have not ended. Only
/// threads of the CPU lane and the warden lock it, never an I/O thread.
#[derive(Default)]
pub(crate) struct Suspended(Mutex<Slab<Arc<dyn Run>>>);

impl Suspended {
    pub(crate) fn insert(&self, job: Arc<dyn Run>) -> usize {
        self.lock().insert(job)
    }

    pub(crate) fn remove(&self, key: usize) {
        let job = self.lock().try_remove(key);
        // Outside the lock: it may be the last reference.
        drop(job);
    }

    fn all(&self) -> Vec<Arc<dyn Run>> {
        self.lock().iter().map(|(_, job)| job.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Slab<Arc<dyn Run>>> {
        self.0
            .lock()
            .expect("no foreign code runs under the registry's lock")
    }
}
