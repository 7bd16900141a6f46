//! How the workers of the rayon backend take turns at the lane's queue, and
//! where they wait for the next job.
//!
//! A worker that has used up its jobs could go back to rayon and sleep there.
//! But rayon's sleep is made for work that splits: a worker that is woken wakes
//! two more, and one that finds nothing looks around 32 times before it sleeps,
//! with a system call each. For a job now and then that is two threads too many
//! and 100 µs of computing. So **the last drainer keeps its ticket and parks
//! here** (`idle.rs` says who may), and the next push wakes just that one.
//! All others sleep in rayon, where a job that splits its work finds them.
//!
//! A parked worker is one that rayon does not have. That is no loss while the
//! lane has no job, which is the only time when there is one; but for two:
//!
//! - [`Handle::install`](crate::Handle::install) brings work from outside. It
//!   says so ([`ActiveWorkers::lend`]), and nobody parks while it lasts.
//! - What a job leaves behind (`rayon::spawn`) is looked for before a worker
//!   parks, and then now and again: after [`FIRST_LOOK`], and each time after
//!   twice as long. Work that splits only later may have to do with one thread less
//!   until the next look. After [`LONGEST_LOOK`] without a job the worker goes back
//!   to rayon and sleeps there: a lane that is not used makes no thread wake up.
//!
//! Between two jobs a drainer gives rayon's own work a turn, so that a lane that is
//! never empty starves neither `rayon::spawn` nor stolen children. So it does where
//! futures run, after a slice of 5 to 10 ms (`budget.rs`).
//!
//! Where jobs follow each other closely, a worker that finds the queue empty
//! looks on for [`SPIN`] before it parks, as a wake-up costs more than that;
//! one worker of the lane at a time, and only if its own last park was as
//! short. A lane that gets a job now and then burns nothing by it.

use std::cell::Cell;
use std::hint;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst, fence};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rayon_core::Yield;

use super::idle::{Idle, Wakeup};
use crate::lane::Level;
use crate::task::{Run, StepEnd, budget};

/// A round trip that finds its awaiter asleep takes some 10 µs here.
const SPIN: Duration = Duration::from_micros(20);
/// Jobs without a turn of rayon's between them.
const MOST_JOBS: usize = 64;
const FIRST_LOOK: Duration = Duration::from_millis(20);
const LONGEST_LOOK: Duration = Duration::from_secs(1);

thread_local! {
    static IS_DRAINING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this worker drains the queue, at whatever depth of its stack the caller
/// is: then it looks at the queue before it sleeps.
pub(super) fn is_draining() -> bool {
    IS_DRAINING.get()
}

pub(super) struct ActiveWorkers {
    idle: Idle,
    /// The workers, by number.
    threads: Box<[Thread]>,
    /// How many want all workers to be rayon's.
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

    /// After a push and a fence.
    pub(super) fn notify(&self, spawn_drain: impl Fn()) {
        self.handle(self.idle.notify(), spawn_drain);
    }

    /// A ticket came to a thread that can't use it. `offer` spawns another, for all
    /// workers to see, if one is still needed.
    pub(super) fn cannot_drain(&self, level: &Level, broadcast: impl Fn()) {
        let notify = self.idle.deactivate(true, || !level.has_queued());
        self.handle(notify, broadcast);
    }

    fn handle(&self, notify: Wakeup, spawn_drain: impl Fn()) {
        match notify {
            Wakeup::Nothing => {}
            Wakeup::Spawn => spawn_drain(),
            Wakeup::Unpark(worker) => self.threads[worker].unpark(),
        }
    }

    /// From now on no worker parks here, until the answer is dropped.
    pub(super) fn keep_from_parking(&self) -> impl Drop {
        struct ParkingOff<'a>(&'a AtomicUsize);
        impl Drop for ParkingOff<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, SeqCst);
            }
        }
        // `SeqCst` and a fence: a worker that parks changes the tickets, and then
        // looks here. One of the two sees the other.
        self.parking_off.fetch_add(1, SeqCst);
        fence(SeqCst);
        if let Some(worker) = self.idle.unpark_any() {
            self.threads[worker].unpark();
        }
        ParkingOff(&self.parking_off)
    }

    fn is_parking_off(&self) -> bool {
        self.parking_off.load(SeqCst) > 0
    }

    /// The use of a ticket, at the bottom of the stack of `worker`.
    pub(super) fn drain(&self, worker: usize, level: &Level, spawn_drain: impl Fn()) {
        let turn = Turn {
            active: self,
            worker,
            level,
            spawn_drain,
            searching: true,
            spins: false,
            next: None,
            rayon_had_its: budget::ticks(),
            jobs: 0,
        };
        IS_DRAINING.set(true);
        turn.take();
        IS_DRAINING.set(false);
    }
}

/// A worker's turn at the queue.
struct Turn<'a, S> {
    active: &'a ActiveWorkers,
    worker: usize,
    level: &'a Level,
    spawn_drain: S,
    searching: bool,
    /// Jobs follow each other closely.
    spins: bool,
    /// One that goes on.
    next: Option<Arc<dyn Run>>,
    /// When rayon's own work had its turn, by the ticker, and the jobs since then.
    rayon_had_its: u32,
    jobs: usize,
}

impl<S: Fn()> Turn<'_, S> {
    fn take(mut self) {
        let idle = &self.active.idle;
        let is_empty = || !self.level.has_queued();
        let mut look_after = FIRST_LOOK;
        loop {
            while let Some(job) = self.next.take().or_else(|| self.level.pop()) {
                self.end_search();
                self.run(job);
                look_after = FIRST_LOOK;
            }
            if self.spins {
                self.searching = self.searching || idle.try_search();
                if self.searching && spin(self.level) {
                    continue;
                }
            }
            if self.finds_work() {
                continue;
            }
            match self.park(look_after) {
                Parked::Woken { soon } => {
                    self.spins = soon;
                    continue;
                }
                Parked::TimedOut => {
                    self.spins = false;
                    look_after *= 2;
                    if !self.finds_work() && look_after <= LONGEST_LOOK {
                        continue;
                    }
                    // Where rayon had some work it may have more; and a lane that is
                    // not used needs no drainer.
                }
                Parked::MayNot => {}
            }
            match idle.deactivate(self.searching, is_empty) {
                Wakeup::Spawn => self.searching = true,
                other => return self.active.handle(other, &self.spawn_drain),
            }
        }
    }

    fn run(&mut self, job: Arc<dyn Run>) {
        match job.run() {
            StepEnd::Ended => {
                self.jobs += 1;
                if self.is_rayons_turn() {
                    self.give_rayon_its_turn();
                }
            }
            StepEnd::Suspended => {
                if budget::is_slice_over(self.rayon_had_its) {
                    self.give_rayon_its_turn();
                }
            }
            StepEnd::Requeue { job, yielded } => self.go_on(job, yielded),
        }
    }

    /// After a job. Where the queue is empty, rayon's turn comes before this worker
    /// parks. A ticket on its way to another worker would be the first thing that it
    /// finds, and would come to nothing here. Neither is put off for long.
    fn is_rayons_turn(&self) -> bool {
        let is_good = || self.level.has_queued() && !self.active.idle.has_searcher();
        self.jobs >= MOST_JOBS || is_good()
    }

    /// A job has work to do again after its step.
    fn go_on(&mut self, job: Arc<dyn Run>, yielded: bool) {
        if budget::is_slice_over(self.rayon_had_its) {
            // Rayon's work may take long: another worker comes for the job.
            self.level.put_back(job, yielded);
            fence(SeqCst);
            self.active.notify(&self.spawn_drain);
            self.give_rayon_its_turn();
        } else if self.level.has_queued() {
            // This worker looks for the next one now: no other need be told.
            self.level.put_back(job, yielded);
        } else {
            // Nor need it go through the queue.
            self.next = Some(job);
        }
    }

    /// Not in a search: others rely on that to be short.
    fn give_rayon_its_turn(&mut self) -> Option<Yield> {
        self.end_search();
        self.rayon_had_its = budget::ticks();
        self.jobs = 0;
        rayon_core::yield_now()
    }

    /// Before this worker parks: whether there is something to do.
    fn finds_work(&mut self) -> bool {
        self.end_search();
        self.level.has_queued() || self.give_rayon_its_turn() == Some(Yield::Executed)
    }

    fn end_search(&mut self) {
        if mem::take(&mut self.searching) {
            let notify = self.active.idle.found(|| !self.level.has_queued());
            self.active.handle(notify, &self.spawn_drain);
        }
    }

    /// Until another thread unparks this worker, or for so long; it is searching then.
    fn park(&mut self, timeout: Duration) -> Parked {
        let ActiveWorkers { idle, .. } = self.active;
        let shall_stay = || self.level.has_queued() || self.active.is_parking_off();
        if self.active.is_parking_off()
            || !idle.try_park(self.worker, &mut self.searching, shall_stay)
        {
            return Parked::MayNot;
        }
        self.searching = true;
        let start = Instant::now();
        loop {
            let elapsed = start.elapsed();
            let left = timeout.saturating_sub(elapsed);
            if left.is_zero() && idle.unpark(self.worker) {
                return Parked::TimedOut;
            }
            if !idle.is_parked() {
                return Parked::Woken {
                    soon: elapsed < SPIN,
                };
            }
            // A stray token makes one round more.
            thread::park_timeout(left);
        }
    }
}

enum Parked {
    Woken {
        soon: bool,
    },
    TimedOut,
    /// Another one drains, or rayon wants all workers, or there is a job.
    MayNot,
}

/// Looks on for a while, and lets others have the core; true if there is a job.
fn spin(level: &Level) -> bool {
    const LOOKS: usize = 8;
    let start = Instant::now();
    while start.elapsed() < SPIN {
        // First of all: the awaiting side may have been woken on this core.
        thread::yield_now();
        for _ in 0..LOOKS {
            if level.has_queued() {
                return true;
            }
            hint::spin_loop();
        }
    }
    false
}
