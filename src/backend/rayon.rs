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
//! - A ticket is used at the bottom of a worker's stack only. A worker that
//!   waits in `join` or `scope` takes work from the same places as rayon's main
//!   loop does, and would start a stranger on top of the waiting job. It can't
//!   keep the ticket, since it can't tell when it stops waiting, and if it put
//!   it back it would be the first to find it; so it gives it to the warden,
//!   which issues it again a moment later (`stack.rs` says how it knows).
//! - Between jobs a drainer gives rayon's own work a turn (after each that was
//!   not short, and after eight short ones), so that a lane that is never empty
//!   does not starve `rayon::spawn` or stolen children.

use std::fmt;
use std::io;
use std::mem;
use std::sync::{Arc, Barrier, Mutex, OnceLock, PoisonError, Weak};
use std::thread::{self, Thread};

use rayon_core::{ThreadPool, ThreadPoolBuilder};

use super::Threads;
use super::drain::Drainers;
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
    drainers: Drainers,
}

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
        let lesson = Arc::new(Lesson {
            everyone: Barrier::new(threads + 1),
            workers: (0..threads).map(|_| OnceLock::new()).collect(),
        });
        for _ in 0..threads {
            spawn_ticket(&pool, Ticket::Learn(lesson.clone()));
        }
        lesson.everyone.wait();
        lesson.everyone.wait();
        let workers = lesson.workers.iter().map(|worker| {
            let worker = worker.get().expect("each has been there");
            worker.clone()
        });
        Ok(Self {
            pool: Arc::downgrade(&pool),
            owner: Mutex::new(Some(pool)),
            drainers: Drainers::new(workers.collect()),
        })
    }

    pub(super) fn kick(&self, level: &Level) {
        self.drainers.kick(|| self.spawn_ticket(level));
    }

    pub(super) fn reissue_ticket(&self, level: &Level) {
        self.drainers.resume();
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
        // For good: the workers go back to rayon, to end there.
        mem::forget(self.drainers.lend());
        // Outside the lock. Does not wait: the workers end when they are done.
        drop(pool);
    }

    pub(super) fn is_retired(&self) -> bool {
        self.owner().is_none()
    }

    /// Runs `f` in the pool while the caller waits; `None` after a shutdown.
    pub(crate) fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> Option<R> {
        let pool = self.pool.upgrade()?;
        let _all_workers = self.drainers.lend();
        Some(pool.install(f))
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
    Learn(Arc<Lesson>),
}

/// What each worker learns, and is learned of it.
struct Lesson {
    everyone: Barrier,
    workers: Box<[OnceLock<Thread>]>,
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
        Ticket::Learn(lesson) => {
            let below = BELOW_MAIN_LOOP.take();
            stack::learn_bottom(position, &below);
            let _ = lesson.workers[worker_number()].set(thread::current());
            // No worker gets two of them, and none is free to steal what
            // follows: each waits here for the others, before and after.
            lesson.everyone.wait();
            for look_for_work in [rayon_core::yield_now, rayon_core::yield_local] {
                let below = below.clone();
                rayon_core::spawn(move || stack::learn_callers(&below));
                look_for_work();
            }
            lesson.everyone.wait();
        }
        Ticket::Drain(level) => {
            let Some(Threads::Rayon(pool)) = level.threads() else {
                unreachable!("tickets are issued by the rayon backend");
            };
            if stack::is_at_bottom(position) {
                let spawn_ticket = || pool.spawn_ticket(&level);
                pool.drainers.drain(worker_number(), &level, spawn_ticket);
            } else {
                pool.drainers.put_off();
                // An error means that the lane is closed and the queue seen to.
                let _ = level.lane().tell_warden(Order::Rehome(level.priority()));
            }
        }
    }
}

fn worker_number() -> usize {
    rayon_core::current_thread_index().expect("tickets are used by the pool's workers")
}
