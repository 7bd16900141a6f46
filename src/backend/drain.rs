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
//! - What a job leaves behind (`rayon::spawn`) is looked for once before a
//!   worker parks, and then now and again: after [`FIRST_LOOK`], and each time
//!   after twice as long, up to [`LONGEST_LOOK`]. It may have to do with one
//!   thread less for at most as long as it has been going on already.
//!
//! Where jobs follow each other closely, a worker that finds the queue empty
//! looks on for [`LINGER`] before it parks, as a wake-up costs more than that;
//! one worker of the lane at a time, and only if its own last park was as
//! short. A lane that gets a job now and then burns nothing by it.

use std::hint;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst, fence};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rayon_core::Yield;

use super::tickets::{Kick, Tickets};
use crate::job::{After, Run, completion};
use crate::lane::Level;

/// A round trip that finds its awaiting side asleep takes some 10 µs here.
const LINGER: Duration = Duration::from_micros(20);
/// While jobs follow each other closely, for how long rayon's own work may have
/// to wait for its turn: a search must end for that.
const RAYON_WAITS: Duration = Duration::from_millis(5);
const SHORT_JOBS_PER_TURN: usize = 8;
/// Reading the clock for each job would cost as much as the rest of it.
const JOBS_PER_SAMPLE: usize = 16;
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
            rayon_had_its: Instant::now(),
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
    rayon_had_its: Instant,
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
            if self.lingers {
                self.searching = self.searching || tickets.try_search();
                if self.searching && linger(self.level) {
                    continue;
                }
                self.give_rayon_its_turn();
            }
            match self.park(look_after) {
                Parked::Woken { soon } => {
                    self.lingers = soon;
                    continue;
                }
                Parked::TimedOut => {
                    look_after = (2 * look_after).min(LONGEST_LOOK);
                    if self.give_rayon_its_turn() != Some(Yield::Executed) {
                        continue;
                    }
                    // Where there was some there may be more: back to rayon.
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
        let run = || self.level.run(job);
        let after = if self.lingers || self.jobs % JOBS_PER_SAMPLE == 0 {
            let (after, short) = self.level.briskness().sample(run);
            self.short = short;
            after
        } else {
            run()
        };
        self.jobs = self.jobs.wrapping_add(1);
        // Short jobs share the cost of looking for rayon's.
        let is_rayons_turn = !self.short || self.jobs % SHORT_JOBS_PER_TURN == 0;
        match after {
            After::Nothing => {}
            After::Wake(waker) => {
                // Whoever awaits this one may push the next before this worker
                // has come to look for it, and would wake another one in vain.
                if self.lingers
                    && !self.level.has_queued()
                    && self.rayon_had_its.elapsed() < RAYON_WAITS
                {
                    self.searching = self.drainers.tickets.try_search();
                }
                completion::wake(Some(waker));
            }
            After::Again { job, gave_way } => {
                if is_rayons_turn || self.level.has_queued() {
                    self.level.put_back(job, gave_way);
                } else {
                    // Where there is no other it need not go through the queue.
                    self.next = Some(job);
                }
            }
        }
        if is_rayons_turn && !self.searching {
            self.give_rayon_its_turn();
        }
    }

    /// Not in a search: others rely on that to be short.
    fn give_rayon_its_turn(&mut self) -> Option<Yield> {
        self.end_search();
        if self.lingers {
            self.rayon_had_its = Instant::now();
        }
        rayon_core::yield_now()
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
