//! The default backend: a rayon pool whose workers run the lane's jobs.
//!
//! Jobs stay in the lane's own queue; rayon is only asked for threads. What is
//! spawned in the pool is a *ticket*: the right of one worker to drain the
//! queue.
//!
//! - There are never more tickets than workers, and a push issues one only if
//!   it has to: `tickets.rs`. A busy lane pays no rayon job for a job.
//! - A ticket is used at the bottom of a worker's stack only. A worker that
//!   waits in `join` or `scope` takes work from the same places as rayon's main
//!   loop does, and would start a stranger on top of the waiting job. It can't
//!   keep the ticket, since it can't tell when it stops waiting, and if it put
//!   it back it would be the first to find it; so it gives it to the warden,
//!   which issues it again a moment later (`stack.rs` says how it knows).
//! - Between two jobs a drainer gives rayon's own work a turn, so that a lane
//!   that is never empty does not starve `rayon::spawn` or stolen children.
//! - Where jobs follow each other closely, a drainer that finds the queue empty
//!   looks on for [`LINGER`], which is less than it takes to wake it; one of
//!   them, and only if its ticket came as soon after the last one's end. A lane
//!   that gets a job now and then burns nothing by it.

use std::fmt;
use std::hint;
use std::io;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rayon_core::{ThreadPool, ThreadPoolBuilder};

use super::Threads;
use super::tickets::Tickets;
use crate::context;
use crate::handle::Handle;
use crate::lane::Level;
use crate::panics;
use crate::stack::{self, Position};
use crate::warden::Order;

pub(crate) struct Pool {
    /// Taken by the warden when the lane closes; the workers then end.
    owner: Mutex<Option<Arc<ThreadPool>>>,
    pool: Weak<ThreadPool>,
    tickets: Tickets,
    began: Instant,
    /// When the last drainer went, in ns since `began`.
    last_retired: AtomicU64,
}

/// How long a drainer looks on for the next job. The round trip of one that
/// finds its awaiting side asleep takes some 10 µs here.
const LINGER: Duration = Duration::from_micros(20);

impl Pool {
    /// Starts the workers and waits until each has run its start hook and
    /// learned what the bottom of its stack is.
    pub(super) fn start(level: &Level) -> io::Result<Self> {
        let threads = level.lane().settings.threads;
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
                started.map(drop).inspect_err(|_| lane.thread_ended())
            })
            .build()
            .map_err(io::Error::other)?;
        let pool = Arc::new(pool);
        let learned = Arc::new(Barrier::new(threads + 1));
        for _ in 0..threads {
            spawn_ticket(&pool, Ticket::Learn(learned.clone()));
        }
        learned.wait();
        learned.wait();
        Ok(Self {
            pool: Arc::downgrade(&pool),
            owner: Mutex::new(Some(pool)),
            tickets: Tickets::new(threads),
            began: Instant::now(),
            last_retired: AtomicU64::new(0),
        })
    }

    pub(super) fn kick(&self, level: &Level) {
        if self.tickets.try_issue() {
            self.spawn_ticket(level);
        }
    }

    pub(super) fn reissue_ticket(&self, level: &Level) {
        self.tickets.resume();
        self.spawn_ticket(level);
    }

    fn spawn_ticket(&self, level: &Level) {
        // No pool any more: the lane is closed, and the warden sees to the
        // queue.
        if let Some(pool) = self.pool.upgrade() {
            spawn_ticket(&pool, Ticket::Drain(level.clone()));
        }
    }

    pub(super) fn retire(&self) {
        let pool = self.owner().take();
        // Outside the lock. Does not wait: the workers end when they are done.
        drop(pool);
    }

    pub(super) fn is_retired(&self) -> bool {
        self.owner().is_none()
    }

    /// Runs `f` in the pool while the caller waits; `None` after a shutdown.
    pub(crate) fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> Option<R> {
        Some(self.pool.upgrade()?.install(f))
    }

    /// The use of a ticket.
    fn drain(&self, level: &Level) {
        let is_empty = || !level.has_queued();
        let lingers = self.since_last_retired() < LINGER;
        let mut searching = true;
        loop {
            while let Some(job) = level.pop() {
                if mem::take(&mut searching) && self.tickets.found(is_empty) {
                    self.spawn_ticket(level);
                }
                level.run(job);
                rayon_core::yield_now();
            }
            searching = searching || (lingers && self.tickets.try_search());
            if searching && lingers && linger(level) {
                continue;
            }
            if self.tickets.retire(searching, is_empty) {
                break;
            }
            searching = true;
        }
        let now = self.began.elapsed().as_nanos() as u64;
        self.last_retired.store(now, Relaxed);
    }

    fn since_last_retired(&self) -> Duration {
        let last = Duration::from_nanos(self.last_retired.load(Relaxed));
        self.began.elapsed().saturating_sub(last)
    }

    fn owner(&self) -> std::sync::MutexGuard<'_, Option<Arc<ThreadPool>>> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

fn worker_main(level: &Level, worker: rayon_core::ThreadBuilder) {
    let lane = level.lane();
    lane.weigh_thread(level.priority());
    // For its whole life: what a job starts carelessly (a socket, a timer, a
    // `tokio::spawn`) belongs to the I/O runtime.
    let io = lane.io.handle().clone();
    let _io = io.enter();
    context::enter_worker(Handle::new(level.clone()), worker.index());
    BELOW_MAIN_LOOP.set(stack::functions_below_main_loop());
    lane.settings.hooks.started();
    worker.run();
    lane.settings.hooks.stopping();
    drop(context::leave_worker());
    lane.thread_ended();
}

thread_local! {
    static BELOW_MAIN_LOOP: std::cell::RefCell<std::collections::HashSet<usize>> = std::cell::RefCell::default();
}

enum Ticket {
    Drain(Level),
    /// The first thing that each worker runs.
    Learn(Arc<Barrier>),
}

/// The one place that spawns tickets, so that each is called through the same
/// frames and the depth of its own tells who called.
#[inline(never)]
fn spawn_ticket(pool: &ThreadPool, ticket: Ticket) {
    pool.spawn(move || use_ticket(ticket));
}

#[inline(never)]
fn use_ticket(ticket: Ticket) {
    let position = Position::here();
    match ticket {
        Ticket::Learn(learned) => {
            let below = BELOW_MAIN_LOOP.take();
            stack::learn_bottom(position, &below);
            // No worker gets two of them, and none is free to steal what
            // follows: each waits here for the others, before and after.
            learned.wait();
            for look_for_work in [rayon_core::yield_now, rayon_core::yield_local] {
                let below = below.clone();
                rayon_core::spawn(move || stack::learn_callers(&below));
                look_for_work();
            }
            learned.wait();
        }
        Ticket::Drain(level) => {
            let Some(Threads::Rayon(pool)) = level.threads() else {
                unreachable!("tickets are issued by the rayon backend");
            };
            if stack::is_at_bottom(position) {
                pool.drain(&level);
            } else {
                pool.tickets.put_off();
                // An error means that the lane is closed and the queue seen to.
                let _ = level.lane().tell_warden(Order::Rehome(level.priority()));
            }
        }
    }
}

/// Looks on for a while; true if there is a job. Rayon's own work has its turns
/// meanwhile, and whoever else wants the core.
fn linger(level: &Level) -> bool {
    const LOOKS: usize = 16;
    let start = Instant::now();
    loop {
        for _ in 0..LOOKS {
            if level.has_queued() {
                return true;
            }
            hint::spin_loop();
        }
        if start.elapsed() >= LINGER {
            return false;
        }
        rayon_core::yield_now();
        thread::yield_now();
    }
}
