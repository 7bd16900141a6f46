//! The default backend: a rayon pool whose workers run the lane's jobs.
//!
//! Jobs stay in the lane's own queue; rayon is only asked for threads. What is
//! spawned in the pool is a *ticket*: the right of one worker to drain the
//! queue.
//!
//! - There are never more tickets than workers, and a push issues one only if
//!   it has to: `idle.rs`. What a worker does with its own stands in
//!   `drain.rs`. A busy lane pays no rayon job for a job, and nor does one that
//!   gets a job now and then.
//! - A ticket is used at the bottom of a worker's stack only (`stack.rs`). A worker
//!   that waits in `join` or `scope` takes work from the same places as rayon's main
//!   loop does, and would start a stranger on top of the waiting job.
//! - Rayon wakes its lowest-numbered sleeper for a ticket, and that may be a worker
//!   that waits, each time again. So a worker that can't use a ticket gives it back,
//!   and if it is still needed *offers* it to all: rayon's `spawn_broadcast` puts a
//!   copy before each worker, and the first that comes by it at the bottom of its
//!   stack takes it. An idle worker gets it within one wake-up, a busy one when it
//!   comes back. A worker that waits inside of rayon's own work (a stolen child) has
//!   no further copy when it becomes idle: for that case the control thread offers once more
//!   after a while.

use std::io;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use ::tokio::task::JoinHandle;
use rayon_core::{ThreadPool, ThreadPoolBuilder};

use super::drain::{ActiveWorkers, is_draining};
use super::stack;
use crate::lane::control::Message;
use crate::lane::{Level, Workers, thread as lane_thread};
use crate::panics;
use crate::task::{Run, Schedule};

/// Between two offers of the same ticket.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(4);

pub(crate) struct Pool {
    /// For its tickets.
    this: Weak<Self>,
    /// Taken by the control thread when the lane closes; the workers then end.
    owner: Mutex<Option<Arc<ThreadPool>>>,
    pool: Weak<ThreadPool>,
    active: ActiveWorkers,
    /// How deep on its stack a worker comes by a ticket, and by an offer, in rayon's
    /// main loop.
    drain_depth: usize,
    broadcast_depth: usize,
}

impl Pool {
    /// Starts the workers and waits until each has run its start hook.
    pub(crate) fn start(level: &Level) -> io::Result<Arc<dyn Workers>> {
        let threads = level.lane().settings.threads;
        let mut workers = Vec::with_capacity(threads);
        let level = level.clone();
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .panic_handler(|payload| {
                // A bare `rayon::spawn` of the user's has no awaiting side.
                panics::report_payload("a closure given to rayon::spawn", payload);
            })
            .spawn_handler(|worker| {
                let level = level.clone();
                let lane = level.lane().clone();
                let name = lane.settings.thread_name(level.priority(), worker.index());
                let mut thread = thread::Builder::new().name(name);
                if let Some(bytes) = worker.stack_size() {
                    thread = thread.stack_size(bytes);
                }
                lane.thread_started();
                let started = thread.spawn(move || worker_main(&level, worker));
                let started = started.inspect_err(|_| lane.thread_ended())?;
                workers.push(started.thread().clone());
                Ok(())
            })
            .build()
            .map_err(io::Error::other)?;
        let pool = Arc::new(pool);
        let (tell, depths) = mpsc::channel();
        broadcast_drain(&pool, Arc::new(BroadcastJob::Measure(tell.clone())));
        // From each worker: so all have run their start hooks.
        let broadcast_depths = depths.iter().take(threads);
        let broadcast_depth = broadcast_depths.max().expect("a pool has a worker");
        spawn_drain(&pool, DrainJob::Measure(tell));
        let drain_depth = depths.recv().map_err(io::Error::other)?;
        Ok(Arc::new_cyclic(|this| Self {
            this: this.clone(),
            pool: Arc::downgrade(&pool),
            owner: Mutex::new(Some(pool)),
            active: ActiveWorkers::new(workers.into()),
            drain_depth,
            broadcast_depth,
        }))
    }

    /// None after a shutdown: then the control thread sees to the queue.
    fn up(&self) -> Option<(Arc<ThreadPool>, Arc<Self>)> {
        Some((self.pool.upgrade()?, self.this.upgrade()?))
    }

    fn spawn_drain(&self, level: &Level) {
        if let Some((pool, this)) = self.up() {
            spawn_drain(&pool, DrainJob::Drain(this, level.clone()));
        }
    }

    /// This thread can't use a ticket.
    fn cannot_drain(&self, level: &Level, pause: Duration) {
        self.active.cannot_drain(level, || {
            if let Some((pool, this)) = self.up() {
                let job = Broadcast {
                    pool: this,
                    level: level.clone(),
                    is_taken: AtomicBool::new(false),
                    untried: AtomicUsize::new(pool.current_num_threads()),
                    pause,
                };
                broadcast_drain(&pool, Arc::new(BroadcastJob::Drain(job)));
            }
        });
    }

    fn drain(&self, level: &Level) {
        let worker = rayon_core::current_thread_index();
        let worker = worker.expect("only the pool's workers drain");
        self.active.drain(worker, level, || self.spawn_drain(level));
    }

    fn owner(&self) -> MutexGuard<'_, Option<Arc<ThreadPool>>> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workers for Pool {
    fn submit(&self, level: &Level, job: Arc<dyn Run>) -> Option<JoinHandle<()>> {
        level.enqueue(job);
        None
    }

    /// A worker that finds a job wakes the next.
    fn notify(&self, level: &Level) {
        self.active.notify(|| self.spawn_drain(level));
    }

    fn install(&self, f: &mut (dyn FnMut() + Send)) -> bool {
        let Some(pool) = self.pool.upgrade() else {
            return false;
        };
        let _all_workers = self.active.keep_from_parking();
        pool.install(f);
        true
    }

    fn shutdown(&self) {
        let pool = self.owner().take();
        // For good: the workers go back to rayon, to end there.
        mem::forget(self.active.keep_from_parking());
        // Outside the lock. Does not wait: the workers end when they are done.
        drop(pool);
    }

    fn is_shut_down(&self) -> bool {
        self.owner().is_none()
    }
}

fn worker_main(level: &Level, worker: rayon_core::ThreadBuilder) {
    let lane = level.lane();
    lane.set_thread_niceness(level.priority());
    // For its whole life: what a job starts carelessly (a socket, a timer, a
    // `tokio::spawn`) belongs to the I/O runtime.
    let io = lane.io.handle().clone();
    let _io = io.enter();
    lane_thread::start(level.clone(), Some(worker.index()));
    lane.settings.hooks.started();
    stack::mark_base();
    worker.run();
    lane.settings.hooks.stopping();
    drop(lane_thread::end());
    lane.thread_ended();
}

enum DrainJob {
    Drain(Arc<Pool>, Level),
    /// The first that is spawned: it tells its depth.
    Measure(Sender<usize>),
}

/// What each worker gets a copy of.
enum BroadcastJob {
    Drain(Broadcast),
    Measure(Sender<usize>),
}

struct Broadcast {
    pool: Arc<Pool>,
    level: Level,
    is_taken: AtomicBool,
    /// Workers that have not refused it for certain to look at the queue later.
    untried: AtomicUsize,
    /// Until the next offer, if it comes to that.
    pause: Duration,
}

/// The one place that spawns tickets, so that each is called through the same
/// frames and the depth of its own tells what called it.
#[inline(never)]
fn spawn_drain(pool: &ThreadPool, job: DrainJob) {
    pool.spawn(move || run_drain(job));
}

#[inline(never)]
fn run_drain(job: DrainJob) {
    let depth = stack::depth();
    match job {
        DrainJob::Measure(tell) => drop(tell.send(depth)),
        DrainJob::Drain(pool, level) => {
            if depth == pool.drain_depth {
                pool.drain(&level);
            } else {
                pool.cannot_drain(&level, FIRST_PAUSE);
            }
        }
    }
}

/// The same for offers.
#[inline(never)]
fn broadcast_drain(pool: &ThreadPool, broadcast: Arc<BroadcastJob>) {
    pool.spawn_broadcast(move |_| run_broadcast(&broadcast));
}

#[inline(never)]
fn run_broadcast(broadcast: &Arc<BroadcastJob>) {
    let depth = stack::depth();
    match &**broadcast {
        BroadcastJob::Measure(tell) => drop(tell.send(depth)),
        BroadcastJob::Drain(job) => job.arrive(broadcast, depth),
    }
}

// `SeqCst`: this path is rare, and not worth a proof of less.
impl Broadcast {
    fn arrive(&self, broadcast: &Arc<BroadcastJob>, depth: usize) {
        let Self { pool, level, .. } = self;
        if depth == pool.broadcast_depth {
            if self.take() {
                pool.drain(level);
            }
        } else if is_draining() {
            // This worker looks at the queue later. If all are such workers, the
            // ticket is of no use.
            if self.untried.fetch_sub(1, SeqCst) == 1 {
                self.broadcast_again();
            }
        } else if !self.is_taken.load(SeqCst) {
            let broadcast = broadcast.clone();
            let again = move || {
                if let BroadcastJob::Drain(job) = &*broadcast {
                    job.broadcast_again();
                }
            };
            // An error means that the lane is closed and the queue seen to.
            let _ = level
                .lane()
                .send_control(Message::CallAfter(self.pause, Box::new(again)));
        }
    }

    /// True for the first that asks.
    fn take(&self) -> bool {
        !self.is_taken.swap(true, SeqCst)
    }

    fn broadcast_again(&self) {
        if self.take() {
            let pause = (2 * self.pause).min(LONGEST_PAUSE);
            self.pool.cannot_drain(&self.level, pause);
        }
    }
}
