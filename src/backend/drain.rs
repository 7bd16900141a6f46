//! How the workers of the rayon backend take turns at the lane's queue, and
//! where they wait for the next job.
//!
//! A worker that has used up its jobs could go back to rayon and sleep there.
//! But rayon's sleep is made for work that splits: a worker that is woken wakes
//! two more, and one that finds nothing looks around 32 times before it sleeps,
//! with a system call each. For a job now and then that is two threads too many
//! and 100 µs of computing. So **the last drainer keeps its ticket and parks
//! here** (`tickets.rs` says who may), and the next push wakes just that one.
//! All others sleep in rayon, where a job that splits its work finds them.
//!
//! A parked worker is one that rayon does not have. That is no loss while the
//! lane has no job, which is the only time when there is one; but for two:
//!
//! - [`Handle::install`](crate::Handle::install) brings work from outside. It
//!   says so ([`Drainers::lend`]), and nobody parks while it lasts.
//! - What a job leaves behind (`rayon::spawn`) is looked for before a worker
//!   parks, and then now and again: after [`FIRST_LOOK`], and each time after
//!   twice as long, up to [`LONGEST_LOOK`]. Work that splits only later may have
//!   to do with one thread less until the next look.
//!
//! Where jobs follow each other closely, a worker that finds the queue empty
//! looks on for [`LINGER`] before it parks, as a wake-up costs more than that;
//! one worker of the lane at a time, and only if its own last park was as
//! short. A lane that gets a job now and then burns nothing by it.

use std::hint;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst, fence};
use std::task::Waker;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rayon_core::Yield;

use super::tickets::{Kick, Tickets};
use crate::job::{After, Run, completion};
use crate::lane::Level;
use crate::os::coarse_clock;

/// A round trip that finds its awaiting side asleep takes some 10 µs here.
const LINGER: Duration = Duration::from_micros(20);
/// For how long rayon's own work may have to wait where one job goes on and on,
/// or searches follow each other.
const RAYON_WAITS: Duration = Duration::from_millis(5);
const SHORT_JOBS_PER_TURN: usize = 8;
const FIRST_LOOK: Duration = Duration::from_millis(20);
const LONGEST_LOOK: Duration = Duration::from_secs(1);

pub(super) struct Drainers {
    tickets: Tickets,
    /// The workers, by number.
    threads: Box<[Thread]>,
    /// How many want all workers to be rayon's.
    borrowers: AtomicUsize,
}

impl Drainers {
    pub(super) fn new(threads: Box<[Thread]>) -> Self {
        Self {
            tickets: Tickets::new(threads.len()),
            threads,
            borrowers: AtomicUsize::new(0),
        }
    }

    /// After a push and a fence.
    pub(super) fn kick(&self, spawn_ticket: impl Fn()) {
        self.obey(self.tickets.kick(), spawn_ticket);
    }

    /// After a push.
    fn kick_after_push(&self, spawn_ticket: impl Fn()) {
        fence(SeqCst);
        self.kick(spawn_ticket);
    }

    fn obey(&self, kick: Kick, spawn_ticket: impl Fn()) {
        match kick {
            Kick::Nothing => {}
            Kick::Spawn => spawn_ticket(),
            Kick::Unpark(worker) => self.threads[worker].unpark(),
        }
    }

    /// A ticket came to a thread that can't use it: somebody will call
    /// [`resume`](Self::resume) and spawn it again.
    pub(super) fn put_off(&self) {
        self.tickets.put_off();
    }

    pub(super) fn resume(&self) {
        self.tickets.resume();
    }

    /// From now on no worker parks here, until the answer is dropped.
    pub(super) fn lend(&self) -> impl Drop {
        struct Lent<'a>(&'a AtomicUsize);
        impl Drop for Lent<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, SeqCst);
            }
        }
        // A worker that parks changes the tickets and then looks here.
        self.borrowers.fetch_add(1, SeqCst);
        fence(SeqCst);
        if let Some(worker) = self.tickets.unpark_any() {
            self.threads[worker].unpark();
        }
        Lent(&self.borrowers)
    }

    fn are_lent(&self) -> bool {
        self.borrowers.load(SeqCst) > 0
    }

    /// The use of a ticket, at the bottom of the stack of `worker`.
    pub(super) fn drain(&self, worker: usize, level: &Level, spawn_ticket: impl Fn()) {
        let turn = Turn {
            drainers: self,
            worker,
            level,
            spawn_ticket,
            searching: true,
            lingers: false,
            jobs: 0,
            short: false,
            next: None,
            rayon_had_its: coarse_clock::now(),
            rayon_was_last: false,
        };
        turn.take();
    }
}

/// A worker's turn at the queue.
struct Turn<'a, S> {
    drainers: &'a Drainers,
    worker: usize,
    level: &'a Level,
    spawn_ticket: S,
    searching: bool,
    /// Jobs follow each other closely.
    lingers: bool,
    jobs: usize,
    /// The last job of which that was asked was short.
    short: bool,
    /// One that goes on.
    next: Option<Arc<dyn Run>>,
    /// When rayon's own work had its turn, by the coarse clock; and whether that
    /// was after the last job.
    rayon_had_its: Duration,
    rayon_was_last: bool,
}

impl<S: Fn()> Turn<'_, S> {
    fn take(mut self) {
        let tickets = &self.drainers.tickets;
        let is_empty = || !self.level.has_queued();
        let mut look_after = FIRST_LOOK;
        loop {
            while let Some(job) = self.next.take().or_else(|| self.level.pop()) {
                self.end_search();
                self.run(job);
                look_after = FIRST_LOOK;
            }
            if self.lingers && !self.rayon_is_due() {
                self.searching = self.searching || tickets.try_search();
                if self.searching && linger(self.level) {
                    continue;
                }
            }
            if !self.rayon_was_last && self.finds_work() {
                continue;
            }
            match self.park(look_after) {
                Parked::Woken { soon } => {
                    self.lingers = soon;
                    continue;
                }
                Parked::TimedOut => {
                    self.lingers = false;
                    look_after = (2 * look_after).min(LONGEST_LOOK);
                    if !self.finds_work() {
                        continue;
                    }
                    // Where rayon had some it may have more: back to it.
                }
                Parked::MayNot => {}
            }
            match tickets.retire(self.searching, is_empty) {
                Kick::Spawn => self.searching = true,
                other => return self.drainers.obey(other, &self.spawn_ticket),
            }
        }
    }

    fn run(&mut self, job: Arc<dyn Run>) {
        self.level.pause_for_quota(&*job);
        // Some others are timed in any case: see `Timings`.
        let samples = self.lingers || self.jobs == 0;
        let (after, took) = self.level.step(job, samples);
        if let Some(took) = took {
            self.short = self.level.briskness().sample(took);
        }
        self.jobs = self.jobs.wrapping_add(1);
        self.rayon_was_last = false;
        match after {
            After::Nothing => {}
            After::Wake(waker) => self.wake(waker),
            After::Again { job, gave_way } => return self.go_on(job, gave_way),
        }
        if !self.searching && self.is_rayons_turn() {
            self.give_rayon_its_turn();
        }
    }

    /// After a job.
    fn is_rayons_turn(&self) -> bool {
        // Short jobs share the cost of looking for rayon's.
        if self.short && self.jobs % SHORT_JOBS_PER_TURN != 0 {
            return false;
        }
        // A ticket on its way to another worker would be the first thing to be
        // found. It would come to nothing here, and the other would wake in vain.
        !self.drainers.tickets.is_anybody_searching() || self.rayon_is_due()
    }

    /// A task that awaited the last job may push the next one before this worker
    /// has come to look for it, and would wake another worker in vain. So where
    /// jobs follow each other closely, the search begins before the wake; not
    /// with wakers of others, which may do anything, since a search is relied
    /// upon to be short.
    fn wake(&mut self, waker: Waker) {
        let io = &self.level.lane().io;
        if self.lingers && !self.level.has_queued() && !self.rayon_is_due() && io.is_a_tasks(&waker)
        {
            self.searching = self.drainers.tickets.try_search();
        }
        completion::wake(Some(waker));
    }

    /// A job has work to do again after its step.
    fn go_on(&mut self, job: Arc<dyn Run>, gave_way: bool) {
        if self.rayon_is_due() {
            // That may take long: another worker shall come for the job.
            self.level.put_back(job, gave_way);
            self.drainers.kick_after_push(&self.spawn_ticket);
            self.give_rayon_its_turn();
        } else if self.level.has_queued() {
            // This worker looks for the next one now: no other need be told.
            self.level.put_back(job, gave_way);
        } else {
            // Nor need it go through the queue.
            self.next = Some(job);
        }
    }

    fn rayon_is_due(&self) -> bool {
        coarse_clock::now().saturating_sub(self.rayon_had_its) >= RAYON_WAITS
    }

    /// Not in a search: others rely on that to be short.
    fn give_rayon_its_turn(&mut self) -> Option<Yield> {
        self.end_search();
        self.rayon_had_its = coarse_clock::now();
        self.rayon_was_last = true;
        rayon_core::yield_now()
    }

    /// Before this worker parks: whether there is something to do. Rayon has no
    /// turn if there is a job, since the ticket that brings another worker for
    /// that would be the first thing to be found.
    fn finds_work(&mut self) -> bool {
        self.end_search();
        self.level.has_queued() || self.give_rayon_its_turn() == Some(Yield::Executed)
    }

    fn end_search(&mut self) {
        if mem::take(&mut self.searching) {
            let kick = self.drainers.tickets.found(|| !self.level.has_queued());
            self.drainers.obey(kick, &self.spawn_ticket);
        }
    }

    /// Until somebody unparks this worker, or for so long; it is searching then.
    fn park(&mut self, timeout: Duration) -> Parked {
        let Drainers { tickets, .. } = self.drainers;
        let shall_stay = || self.level.has_queued() || self.drainers.are_lent();
        if self.drainers.are_lent()
            || !tickets.try_park(self.worker, &mut self.searching, shall_stay)
        {
            return Parked::MayNot;
        }
        self.level.briskness().end();
        self.searching = true;
        let start = Instant::now();
        loop {
            let elapsed = start.elapsed();
            let left = timeout.saturating_sub(elapsed);
            if left.is_zero() && tickets.unpark(self.worker) {
                return Parked::TimedOut;
            }
            if !tickets.is_parked() {
                return Parked::Woken {
                    soon: elapsed < LINGER,
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
fn linger(level: &Level) -> bool {
    const LOOKS: usize = 8;
    let start = Instant::now();
    while start.elapsed() < LINGER {
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
