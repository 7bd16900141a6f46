//! The workers: a rayon pool whose threads run the lane's jobs.
//!
//! Jobs stay in the lane's own queue; rayon only provides threads. To get one, the lane
//! spawns a *drain job* in the pool: a rayon job that makes a worker active, which then
//! drains the queue.
//!
//! - The number of active workers never exceeds the number of workers, and a push
//!   spawns a drain job only if it has to (`idle.rs`). `drain.rs` describes what an
//!   active worker does. So neither a busy lane nor one with occasional jobs pays a
//!   rayon job for each of its jobs.
//! - A drain job has an effect only at the bottom of a worker's stack (`stack.rs`). A
//!   worker that waits in `join` or `scope` takes work from the same places as rayon's
//!   main loop. There, a drain job would start an unrelated job on top of the waiting
//!   one.
//! - For a drain job rayon wakes its sleeper with the lowest number. That may be a
//!   worker that waits in `join` or `scope`, and the same one each time. So a worker
//!   that cannot drain deactivates. If an active worker is still needed, it
//!   *broadcasts* a drain job: rayon's `spawn_broadcast` gives each worker a copy, and
//!   the first worker that reaches its copy at the bottom of its stack takes it. An
//!   idle worker reaches it within one wake-up, a busy one when it returns to the
//!   bottom. A worker that waits inside rayon's own work (a stolen child) uses up its
//!   copy, and has none when it becomes idle. For this case the control thread
//!   broadcasts again after a pause. (`copies.rs` says what each worker does with its
//!   copy, and why no job waits for a worker that does not come to its own.)
//!
//! All of this rests on the depth of a worker's stack. Where that tells nothing (locals are
//! not on the stack under AddressSanitizer, and at random addresses under Miri), each worker
//! stays in one rayon job and polls the queue instead ([`poll_queue`]).

mod copies;
mod drain;
mod idle;
mod stack;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use std::{io, mem, thread};

use rayon_core::{ThreadPool, ThreadPoolBuilder};

use crate::lane::control::{Due, Message};
use crate::lane::{Level, Submitter, Workers, thread as lane_thread};
use crate::panics::{self, PanicPayload};
use crate::task::{StepEnd, budget};
use crate::trace;
use copies::{Arrival, Copies, StackPlace};
use drain::{ActiveWorkers, is_draining, run_rayons_work};

/// The pause between two broadcasts of the same drain job.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(4);
/// How long a worker that polls the queue sleeps.
const POLLS_AFTER: Duration = Duration::from_millis(1);

pub(crate) struct Pool {
    /// For its drain jobs.
    this: Weak<Self>,
    /// The control thread takes it when the lane closes; the workers then end.
    owner: Mutex<Option<Arc<ThreadPool>>>,
    pool: Weak<ThreadPool>,
    active: ActiveWorkers,
    /// `None` if the workers poll the queue.
    depths: Option<Depths>,
    /// A caller outside of the lane has had it.
    is_lent: AtomicBool,
}

/// How deep on its stack, from rayon's main loop, a worker runs a drain job.
struct Depths {
    spawned: usize,
    broadcast: usize,
}

impl Pool {
    /// Starts the workers and waits until each has run its start hook.
    pub(crate) fn start(own: &Submitter) -> io::Result<Arc<dyn Workers>> {
        let level = own.level();
        let threads = level.lane.settings.threads(own.priority);
        let mut workers = Vec::with_capacity(threads);
        // A bare `rayon::spawn` of the user has no awaiter.
        let report = |payload| {
            let text = PanicPayload::new(payload).text();
            panics::report("a closure given to rayon::spawn", &text);
        };
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .panic_handler(report)
            .spawn_handler(|worker| {
                let (settings, own) = (&level.lane.settings, own.clone());
                let prefix = settings.thread_prefix(own.priority);
                let name = format!("{prefix}-{}", worker.index());
                let thread = settings.thread().name(name);
                let started = thread.spawn(move || worker_main(own, worker))?;
                workers.push(started.thread().clone());
                Ok(())
            })
            .build()
            .map_err(io::Error::other)?;
        let pool = Arc::new(pool);
        let depths = measure_depths(&pool, threads);
        let workers = Arc::new_cyclic(|this| Self {
            this: this.clone(),
            pool: Arc::downgrade(&pool),
            owner: Mutex::new(Some(pool.clone())),
            active: ActiveWorkers::new(workers.into()),
            depths,
            is_lent: AtomicBool::new(false),
        });
        if workers.depths.is_none() {
            trace::warn(trace::POLLING_WORKERS);
            let (workers, level) = (workers.clone(), level.clone());
            let serve = move |_| poll_queue(&level, &workers.pool);
            broadcast_drain(&pool, Box::new(serve));
        }
        Ok(workers)
    }

    /// `None` after a shutdown; the control thread then closes the queued jobs.
    fn up(&self) -> Option<(Arc<ThreadPool>, Arc<Self>)> {
        Some((self.pool.upgrade()?, self.this.upgrade()?))
    }

    fn spawn_drain(&self, level: &Arc<Level>) {
        if let Some((pool, this)) = self.up() {
            let level = level.clone();
            let run = move |depth| match &this.depths {
                Some(bottom) if depth == bottom.spawned => this.drain(&level),
                _ => this.cannot_drain(&level, FIRST_PAUSE),
            };
            spawn_drain(&pool, Box::new(run));
        }
    }

    /// A drain job ran on a thread that cannot drain.
    fn cannot_drain(&self, level: &Arc<Level>, pause: Duration) {
        self.active.cannot_drain(level, || {
            if let Some((pool, this)) = self.up() {
                let job = Arc::new(Broadcast {
                    pool: this,
                    level: level.clone(),
                    copies: Copies::new(pool.current_num_threads()),
                    pause,
                });
                broadcast_drain(&pool, Box::new(move |depth| job.arrive(depth)));
            }
        });
    }

    fn drain(&self, level: &Arc<Level>) {
        let worker = rayon_core::current_thread_index();
        let worker = worker.expect("only the pool's workers drain");
        self.active.drain(worker, level, || self.spawn_drain(level));
    }
}

impl Workers for Pool {
    /// Wakes one worker, unless one is searching or all are active. A worker that finds a
    /// job wakes the next one.
    fn notify(&self, level: &Arc<Level>) {
        if self.depths.is_some() {
            self.active.notify(|| self.spawn_drain(level));
        }
    }

    fn install(&self, f: &mut (dyn FnMut() + Send)) {
        if let Some(pool) = self.pool.upgrade() {
            let _all_workers = self.active.keep_from_parking();
            giveway::note_activity();
            pool.install(f);
        }
    }

    fn lend(&self) -> Option<Arc<ThreadPool>> {
        let pool = self.pool.upgrade()?;
        if !self.is_lent.swap(true, Relaxed) {
            // Never dropped: rayon has to wake the workers.
            mem::forget(self.active.keep_from_parking());
        }
        Some(pool)
    }

    fn shutdown(&self) {
        let owner = self.owner.lock();
        let pool = owner.unwrap_or_else(PoisonError::into_inner).take();
        let is_kept = |pool: &Arc<_>| Arc::strong_count(pool) > 1;
        if self.is_lent.load(Relaxed) && pool.as_ref().is_some_and(is_kept) {
            trace::warn(trace::KEPT_POOL);
        }
        // Never dropped: the workers must return to rayon, to end there.
        mem::forget(self.active.keep_from_parking());
        // Outside the lock. This does not wait: the workers end when they are done.
        drop(pool);
    }
}

fn worker_main(own: Submitter, worker: rayon_core::ThreadBuilder) {
    let lane = &own.levels.lane.clone();
    lane_thread::join_lane(lane, Some(own.priority));
    // For the thread's whole life: what a job starts by accident (a socket, a timer, a
    // `tokio::spawn`) belongs to the I/O runtime.
    let _io = lane.io.enter();
    budget::enable();
    lane_thread::start_level(own, Some(worker.index()));
    stack::mark_base();
    worker.run();
    lane_thread::leave_level();
}

/// Serves the level on each worker, at the bottom of its stack, until the lane is shut down and no
/// job is queued.
///
/// The worker pops the lane's jobs there and nowhere else, and gives rayon's own work a turn after
/// each. Rayon cannot wake it, so it polls. That costs a wake-up a millisecond for each worker, and
/// a job may wait that long, and so may an `install` and rayon's own jobs.
fn poll_queue(level: &Level, pool: &Weak<ThreadPool>) {
    // It counts on the page that threads without an index share: it is slow anyway.
    let mut worker = level.worker(None);
    loop {
        while let Some(job) = level.queue.pop(&mut worker.popped) {
            budget::refill();
            if let StepEnd::Requeue { job, yielded } = job.run(&mut worker) {
                level.queue.put_back(job, yielded);
            }
            run_rayons_work();
        }
        if pool.strong_count() == 0 {
            return;
        }
        if !run_rayons_work() {
            thread::sleep(POLLS_AFTER);
        }
    }
}

/// Waits until each worker has run its start hook. `None` if the depth of the same job
/// differs from one time to the next.
fn measure_depths(pool: &ThreadPool, threads: usize) -> Option<Depths> {
    let of_two = |copies: usize, spawn: &dyn Fn(Sender<usize>)| {
        let (tell, depths) = mpsc::channel();
        spawn(tell.clone());
        spawn(tell);
        let depths: Vec<_> = depths.iter().take(2 * copies).collect();
        let first = *depths.first()?;
        depths.iter().all(|depth| *depth == first).then_some(first)
    };
    let send = |tell: Sender<usize>| Box::new(move |depth| _ = tell.send(depth));
    let broadcast = of_two(threads, &|tell| broadcast_drain(pool, send(tell)))?;
    let spawned = of_two(1, &|tell| spawn_drain(pool, send(tell)))?;
    Some(Depths { spawned, broadcast })
}

/// A drain job of which each worker gets a copy.
struct Broadcast {
    pool: Arc<Pool>,
    level: Arc<Level>,
    copies: Copies,
    /// The pause before the next broadcast, if one is needed.
    pause: Duration,
}

/// The only function that spawns drain jobs that are not broadcast. So rayon calls each
/// through the same frames, and its depth tells where it runs.
#[inline(never)]
fn spawn_drain(pool: &ThreadPool, run: Box<dyn FnOnce(usize) + Send>) {
    pool.spawn(move || run_drain(run));
}

/// Calls `run` with the worker's depth.
#[inline(never)]
fn run_drain(run: Box<dyn FnOnce(usize) + Send>) {
    run(stack::depth());
}

/// The same for broadcasts: each worker calls `arrive`.
#[inline(never)]
fn broadcast_drain(pool: &ThreadPool, arrive: Box<dyn Fn(usize) + Send + Sync>) {
    pool.spawn_broadcast(move |_| run_broadcast(&*arrive));
}

#[inline(never)]
fn run_broadcast(arrive: &dyn Fn(usize)) {
    arrive(stack::depth());
}

impl Broadcast {
    fn arrive(self: &Arc<Self>, depth: usize) {
        let Self { pool, level, .. } = &**self;
        let is_bottom = pool.depths.as_ref().is_some_and(|at| depth == at.broadcast);
        let place = match is_bottom {
            true => StackPlace::Bottom,
            false if is_draining() => StackPlace::Draining,
            false => StackPlace::Waiting,
        };
        match self.copies.arrive(place) {
            Arrival::Drains => pool.drain(level),
            Arrival::Settles => self.settle(),
            Arrival::SettlesLater => {
                let job = self.clone();
                drain::before_idle(move || job.settle());
            }
            Arrival::SettlesAfterPause => {
                let (job, at) = (self.clone(), Instant::now() + self.pause);
                let settle = Box::new(move || job.settle());
                // An error means that the lane is closed and the control thread has closed
                // the queue.
                let _ = level.lane.send_control(Message::At(at, Due::Call(settle)));
            }
            Arrival::Nothing => {}
        }
    }

    /// Unless a thread has taken it: deactivates, or broadcasts again.
    fn settle(&self) {
        if self.copies.take() {
            let pause = (2 * self.pause).min(LONGEST_PAUSE);
            self.pool.cannot_drain(&self.level, pause);
        }
    }
}
