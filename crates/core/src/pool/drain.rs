//! How the workers drain the lane's queue, and where they wait for
//! the next job.
//!
//! When the queue is empty, a worker could return to rayon and sleep there. But rayon's
//! sleep is made for work that splits. A worker that wakes up wakes two more, and one
//! that finds nothing looks around 32 times before it sleeps, with a system call each
//! time. For an occasional job that means two needless threads, which compute for
//! longer than many jobs do. So **the last active worker stays active and parks here**
//! (`idle.rs` has the conditions), and the next push wakes only this worker. All other
//! workers sleep in rayon, where a job that splits its work finds them.
//!
//! Rayon cannot use a parked worker. A worker parks only while the lane has no job, so
//! this costs nothing, with two exceptions:
//!
//! - [`Handle::install`](crate::Handle::install) brings work from outside. It calls
//!   [`ActiveWorkers::keep_from_parking`], and no worker parks until it ends.
//! - A job may leave work behind (`rayon::spawn`). A worker looks for such work before
//!   it parks, then after [`FIRST_LOOK`], and then after twice as long each time. Work
//!   that splits later may have one thread less until the next look. When the time to
//!   the next look would exceed [`LONGEST_LOOK`], the worker returns to rayon and
//!   sleeps there, so an unused lane makes no thread wake up.
//!
//! Between two jobs an active worker gives rayon's own work a turn. So a lane that is
//! never empty starves neither `rayon::spawn` nor stolen children. A turn looks at the queues of
//! all workers. So while rayon has no work, the next turn comes after twice as many jobs, up to
//! [`RARELY`], or after a slice of 5 to 10 ms (`ticker.rs`), as it does with futures.
//!
//! A worker that finds the queue empty does not spin for the next job. A spin of 20 or 40 µs before
//! it parks made jobs that follow each other closely no faster, and cost more CPU time than the
//! wake-ups that it saved.

use std::cell::Cell;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst, fence};
use std::task::Poll;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rayon_core::Yield;

use super::idle::{Idle, Wakeup};
use crate::guard::on_drop;
use crate::lane::Level;
use crate::task::{Runnable, StepEnd, Worker, budget, ticker};

/// How many jobs a worker runs between two turns of rayon, if the turns before found nothing.
const RARELY: usize = 16;
/// How many jobs a worker runs at most between two turns of rayon.
const MOST_JOBS: usize = 64;
const FIRST_LOOK: Duration = Duration::from_millis(20);
const LONGEST_LOOK: Duration = Duration::from_secs(1);

thread_local! {
    static IS_DRAINING: Cell<bool> = const { Cell::new(false) };
    static BEFORE_IDLE: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
}

/// Whether this worker drains the queue. The caller may be at any depth of the worker's
/// stack. If true, the worker looks at the queue again before it sleeps.
pub(super) fn is_draining() -> bool {
    IS_DRAINING.get()
}

/// This worker, which drains the queue, calls `settle` once rayon's present turn has ended. If it
/// waits inside a job, it does so after the next turn: each worker gives rayon a turn before it
/// becomes idle. Only the latest `settle` is kept (`copies.rs`).
pub(super) fn before_idle(settle: impl FnOnce() + 'static) {
    BEFORE_IDLE.set(Some(Box::new(settle)));
}

pub(super) struct ActiveWorkers {
    idle: Idle,
    /// The workers' threads, by index.
    threads: Box<[Thread]>,
    /// How many callers need all workers in rayon.
    parking_off: AtomicUsize,
}

impl ActiveWorkers {
    pub(super) fn new(threads: Box<[Thread]>) -> Self {
        Self {
            idle: Idle::new(threads.len()),
            threads,
            parking_off: AtomicUsize::new(0),
        }
    }

    /// Call after a push and a fence.
    pub(super) fn notify(&self, spawn_drain: impl Fn()) {
        self.wake(self.idle.notify(), spawn_drain);
    }

    /// A drain job ran on a thread that cannot drain. If an active worker is still
    /// needed, `broadcast` spawns a drain job that reaches all workers.
    pub(super) fn cannot_drain(&self, level: &Level, broadcast: impl Fn()) {
        let wakeup = self.idle.deactivate(true, || !level.has_queued());
        self.wake(wakeup, broadcast);
    }

    fn wake(&self, wakeup: Wakeup, spawn_drain: impl Fn()) {
        match wakeup {
            Wakeup::Nothing => return,
            Wakeup::Spawn => spawn_drain(),
            Wakeup::Unpark(worker) => self.threads[worker].unpark(),
        }
        giveway::note_activity();
    }

    /// No worker parks here until the returned guard is dropped.
    pub(super) fn keep_from_parking(&self) -> impl Drop {
        // `SeqCst` and a fence: a worker that parks changes the word of `idle` and then
        // reads this counter. At least one of the two sees the other.
        self.parking_off.fetch_add(1, SeqCst);
        fence(SeqCst);
        if let Some(worker) = self.idle.unpark_any() {
            self.threads[worker].unpark();
        }
        on_drop(|| _ = self.parking_off.fetch_sub(1, SeqCst))
    }

    fn is_parking_off(&self) -> bool {
        self.parking_off.load(SeqCst) > 0
    }

    /// Drains the queue as the active worker `worker`, at the bottom of its stack.
    pub(super) fn drain(&self, worker: usize, level: &Level, spawn_drain: impl Fn()) {
        let activity = Activity {
            active: self,
            index: worker,
            worker: level.worker(Some(worker)),
            level,
            spawn_drain,
            searching: true,
            next: None,
            rayon_had_its: ticker::ticks(),
            jobs: 0,
            jobs_to_a_turn: 1,
        };
        IS_DRAINING.set(true);
        let _ = budget::without(|| {
            budget::refill();
            activity.drain();
        });
        IS_DRAINING.set(false);
    }
}

/// One activity of a worker, from its drain job until it deactivates.
struct Activity<'a, S> {
    active: &'a ActiveWorkers,
    index: usize,
    worker: Worker<'a>,
    level: &'a Level,
    spawn_drain: S,
    searching: bool,
    /// A job to go on with, which is not in the queue.
    next: Option<Arc<dyn Runnable>>,
    /// The tick of rayon's last turn, and the jobs since then.
    rayon_had_its: u32,
    jobs: usize,
    /// After how many jobs its next turn comes.
    jobs_to_a_turn: usize,
}

impl<S: Fn()> Activity<'_, S> {
    fn drain(mut self) {
        let idle = &self.active.idle;
        let is_empty = || !self.level.has_queued();
        let mut look_after = FIRST_LOOK;
        loop {
            while let Some(job) = self.next_job() {
                self.end_search();
                self.run(job);
                look_after = FIRST_LOOK;
            }
            if self.finds_work() {
                continue;
            }
            match self.park(look_after) {
                Parked::Woken => continue,
                Parked::TimedOut => {
                    look_after *= 2;
                    if !self.finds_work() && look_after <= LONGEST_LOOK {
                        continue;
                    }
                    // Return to rayon. If rayon had work, it may have more; and an
                    // unused lane needs no active worker.
                }
                Parked::MustNot => {}
            }
            match idle.deactivate(self.searching, is_empty) {
                Wakeup::Spawn => self.searching = true,
                other => return self.active.wake(other, &self.spawn_drain),
            }
        }
    }

    #[inline]
    fn next_job(&mut self) -> Option<Arc<dyn Runnable>> {
        let (queue, popped) = (&self.level.queue, &mut self.worker.popped);
        self.next.take().or_else(|| queue.pop(popped))
    }

    fn run(&mut self, job: Arc<dyn Runnable>) {
        let is_rayons_turn = match job.run(&mut self.worker) {
            StepEnd::Ended => {
                self.jobs += 1;
                self.is_rayons_turn()
            }
            StepEnd::Suspended => ticker::is_slice_over(self.rayon_had_its),
            StepEnd::Requeue { job, yielded } => self.go_on(job, yielded),
        };
        if is_rayons_turn {
            self.give_rayon_its_turn();
        }
    }

    /// Whether rayon gets its turn after this job.
    ///
    /// If the queue is empty, the turn comes before this worker parks. If a worker is
    /// searching, its drain job may be on its way. This worker would find that drain
    /// job first in rayon's turn, and could not use it. Neither delays the turn for
    /// more than [`MOST_JOBS`] jobs.
    fn is_rayons_turn(&self) -> bool {
        let is_good = || self.level.has_queued() && !self.active.idle.has_searcher();
        let is_due =
            || self.jobs >= self.jobs_to_a_turn || ticker::is_slice_over(self.rayon_had_its);
        self.jobs >= MOST_JOBS || (is_good() && is_due())
    }

    /// Goes on with a job that was woken during its own step. Returns whether rayon gets its turn
    /// first.
    fn go_on(&mut self, job: Arc<dyn Runnable>, yielded: bool) -> bool {
        let is_slice_over = ticker::is_slice_over(self.rayon_had_its);
        // A step of a key has its turn each time.
        if is_slice_over || self.level.has_queued() || self.worker.popped.has_key {
            self.level.queue.put_back(job, yielded);
        } else {
            // No need to pass it through the queue.
            self.next = Some(job);
        }
        // Otherwise this worker pops the next job itself.
        if is_slice_over {
            // Rayon's work may take long: wake another worker for the job.
            fence(SeqCst);
            self.active.notify(&self.spawn_drain);
        }
        is_slice_over
    }

    /// Ends the search first: submitters rely on a search to be short.
    fn give_rayon_its_turn(&mut self) -> bool {
        self.end_search();
        self.rayon_had_its = ticker::ticks();
        self.jobs = 0;
        let found = run_rayons_work();
        if let Some(settle) = BEFORE_IDLE.take() {
            settle();
        }
        let rarer = (2 * self.jobs_to_a_turn).min(RARELY);
        self.jobs_to_a_turn = if found { 1 } else { rarer };
        found
    }

    /// Whether there is work to do before this worker parks.
    fn finds_work(&mut self) -> bool {
        self.end_search();
        self.level.has_queued() || self.give_rayon_its_turn()
    }

    fn end_search(&mut self) {
        if mem::take(&mut self.searching) {
            let wakeup = self.active.idle.found(|| !self.level.has_queued());
            self.active.wake(wakeup, &self.spawn_drain);
        }
    }

    /// Parks until another thread unparks this worker or the timeout passes. In both
    /// cases the worker is searching then.
    fn park(&mut self, timeout: Duration) -> Parked {
        let ActiveWorkers { idle, .. } = self.active;
        let must_not_park = || self.level.has_queued() || self.active.is_parking_off();
        if self.active.is_parking_off()
            || !idle.try_park(self.index, &mut self.searching, must_not_park)
        {
            return Parked::MustNot;
        }
        self.searching = true;
        let start = Instant::now();
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() && idle.unpark(self.index) {
                return Parked::TimedOut;
            }
            if !idle.is_parked() {
                return Parked::Woken;
            }
            // A stray unpark token only costs one more round.
            thread::park_timeout(left);
        }
    }
}

enum Parked {
    Woken,
    TimedOut,
    /// Another worker is active, or a caller needs all workers in rayon, or there is a
    /// job.
    MustNot,
}

/// Runs a job of rayon's own, if there is one.
pub(super) fn run_rayons_work() -> bool {
    budget::without(rayon_core::yield_now) == Poll::Ready(Some(Yield::Executed))
}
