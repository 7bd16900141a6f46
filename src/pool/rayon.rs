//! The default backend: a rayon pool whose workers run the lane's jobs.
//!
//! Jobs stay in the lane's own queue; rayon is only asked for threads. What is
//! spawned in the pool is a *ticket*: the right of one worker to drain the
//! queue.
//!
//! - There are never more tickets than workers, and a push issues one only if
//!   it has to: `tickets.rs`. What a worker does with its own stands in
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
//!   no further copy when it becomes idle: for that case the warden offers once more
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

use super::drain::{Drainers, is_draining};
use super::stack;
use crate::lane::control::Order;
use crate::lane::{Level, Workers, thread as lane_thread};
use crate::panics;
use crate::task::{Run, Schedule};

/// Between two offers of the same ticket.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(4);

pub(crate) struct Pool {
    /// For its tickets.
    this: Weak<Self>,
    /// Taken by the warden when the lane closes; the workers then end.
    owner: Mutex<Option<Arc<ThreadPool>>>,
    pool: Weak<ThreadPool>,
    drainers: Drainers,
    /// How deep on its stack a worker comes by a ticket, and by an offer, in rayon's
    /// main loop.
    ticket_depth: usize,
    offer_depth: usize,
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
        offer_ticket(&pool, Arc::new(Offer::Measure(tell.clone())));
        // From each worker: so all have run their start hooks.
        let offer_depths = depths.iter().take(threads);
        let offer_depth = offer_depths.max().expect("a pool has a worker");
        spawn_ticket(&pool, Ticket::Measure(tell));
        let ticket_depth = depths.recv().map_err(io::Error::other)?;
        Ok(Arc::new_cyclic(|this| Self {
            this: this.clone(),
            pool: Arc::downgrade(&pool),
            owner: Mutex::new(Some(pool)),
            drainers: Drainers::new(workers.into()),
            ticket_depth,
            offer_depth,
        }))
    }

    /// None after a shutdown: then the warden sees to the queue.
    fn up(&self) -> Option<(Arc<ThreadPool>, Arc<Self>)> {
        Some((self.pool.upgrade()?, self.this.upgrade()?))
    }

    fn spawn_ticket(&self, level: &Level) {
        if let Some((pool, this)) = self.up() {
            spawn_ticket(&pool, Ticket::Drain(this, level.clone()));
        }
    }

    /// This thread can't use a ticket.
    fn refuse(&self, level: &Level, pause: Duration) {
        self.drainers.refuse(level, || {
            if let Some((pool, this)) = self.up() {
                let ticket = OfferedTicket {
                    pool: this,
                    level: level.clone(),
                    is_taken: AtomicBool::new(false),
                    untried: AtomicUsize::new(pool.current_num_threads()),
                    pause,
                };
                offer_ticket(&pool, Arc::new(Offer::Drain(ticket)));
            }
        });
    }

    fn drain(&self, level: &Level) {
        let worker = rayon_core::current_thread_index();
        let worker = worker.expect("tickets are used by the pool's workers");
        self.drainers
            .drain(worker, level, || self.spawn_ticket(level));
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
        self.drainers.kick(|| self.spawn_ticket(level));
    }

    fn install(&self, f: &mut (dyn FnMut() + Send)) -> bool {
        let Some(pool) = self.pool.upgrade() else {
            return false;
        };
        let _all_workers = self.drainers.lend();
        pool.install(f);
        true
    }

    fn shutdown(&self) {
        let pool = self.owner().take();
        // For good: the workers go back to rayon, to end there.
        mem::forget(self.drainers.lend());
        // Outside the lock. Does not wait: the workers end when they are done.
        drop(pool);
    }

    fn is_shut_down(&self) -> bool {
        self.owner().is_none()
    }
}

fn worker_main(level: &Level, worker: rayon_core::ThreadBuilder) {
    let lane = level.lane();
    lane.weigh_thread(level.priority());
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

enum Ticket {
    Drain(Arc<Pool>, Level),
    /// The first that is spawned: it tells its depth.
    Measure(Sender<usize>),
}

/// What each worker gets a copy of.
enum Offer {
    Drain(OfferedTicket),
    Measure(Sender<usize>),
}

struct OfferedTicket {
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
fn spawn_ticket(pool: &ThreadPool, ticket: Ticket) {
    pool.spawn(move || use_ticket(ticket));
}

#[inline(never)]
fn use_ticket(ticket: Ticket) {
    let depth = stack::depth();
    match ticket {
        Ticket::Measure(tell) => drop(tell.send(depth)),
        Ticket::Drain(pool, level) => {
            if depth == pool.ticket_depth {
                pool.drain(&level);
            } else {
                pool.refuse(&level, FIRST_PAUSE);
            }
        }
    }
}

/// The same for offers.
#[inline(never)]
fn offer_ticket(pool: &ThreadPool, offer: Arc<Offer>) {
    pool.spawn_broadcast(move |_| use_offer(&offer));
}

#[inline(never)]
fn use_offer(offer: &Arc<Offer>) {
    let depth = stack::depth();
    match &**offer {
        Offer::Measure(tell) => drop(tell.send(depth)),
        Offer::Drain(ticket) => ticket.come_by(offer, depth),
    }
}

// `SeqCst`: this path is rare, and not worth a proof of less.
impl OfferedTicket {
    fn come_by(&self, offer: &Arc<Offer>, depth: usize) {
        let Self { pool, level, .. } = self;
        if depth == pool.offer_depth {
            if self.take() {
                pool.drain(level);
            }
        } else if is_draining() {
            // This worker looks at the queue later. If all are such workers, the
            // ticket is of no use.
            if self.untried.fetch_sub(1, SeqCst) == 1 {
                self.offer_again();
            }
        } else if !self.is_taken.load(SeqCst) {
            let offer = offer.clone();
            let again = move || {
                if let Offer::Drain(ticket) = &*offer {
                    ticket.offer_again();
                }
            };
            // An error means that the lane is closed and the queue seen to.
            let _ = level
                .lane()
                .tell_warden(Order::After(self.pause, Box::new(again)));
        }
    }

    /// True for the first that asks.
    fn take(&self) -> bool {
        !self.is_taken.swap(true, SeqCst)
    }

    fn offer_again(&self) {
        if self.take() {
            let pause = (2 * self.pause).min(LONGEST_PAUSE);
            self.pool.refuse(&self.level, pause);
        }
    }
}
