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
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst, fence};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rayon_core::Yield;

use super::tickets::{Kick, Tickets};
use crate::job::completion;
use crate::lane::Level;

/// A round trip that finds its awaiting side asleep takes some 10 µs here.
const LINGER: Duration = Duration::from_micros(20);
/// While jobs follow each other closely, rayon's own work has its turn after so
/// many.
const JOBS_IN_A_ROW: usize = 32;
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
        let is_empty = || !level.has_queued();
        let mut searching = true;
        let mut lingers = false;
        let mut look_after = FIRST_LOOK;
        let mut jobs = 0_usize;
        loop {
            while let Some(job) = level.pop() {
                self.end_search(&mut searching, is_empty, &spawn_ticket);
                let waker = level.run(job);
                jobs = jobs.wrapping_add(1);
                // Whoever awaited this one may push the next before this worker
                // has come to look for it, and would wake another one in vain.
                if lingers && waker.is_some() && is_empty() && jobs % JOBS_IN_A_ROW != 0 {
                    searching = self.tickets.try_search();
                }
                completion::wake(waker);
                if !searching {
                    // Never in a search: others rely on that to be short.
                    rayon_core::yield_now();
                }
                look_after = FIRST_LOOK;
            }
            if lingers {
                searching = searching || self.tickets.try_search();
                if searching && linger(level) {
                    continue;
                }
                self.end_search(&mut searching, is_empty, &spawn_ticket);
                rayon_core::yield_now();
            }
            let shall_stay = || level.has_queued() || self.are_lent();
            if !self.are_lent() && self.tickets.try_park(worker, &mut searching, shall_stay) {
                let parked = Instant::now();
                searching = true;
                if self.park(worker, look_after) {
                    lingers = parked.elapsed() < LINGER;
                    continue;
                }
                self.end_search(&mut searching, is_empty, &spawn_ticket);
                look_after = (2 * look_after).min(LONGEST_LOOK);
                if rayon_core::yield_now() != Some(Yield::Executed) {
                    continue;
                }
                // Where there was some there may be more: back to rayon.
            }
            match self.tickets.retire(searching, is_empty) {
                Kick::Spawn => searching = true,
                other => {
                    self.obey(other, &spawn_ticket);
                    return;
                }
            }
        }
    }

    fn end_search(
        &self,
        searching: &mut bool,
        is_empty: impl FnOnce() -> bool,
        spawn_ticket: impl Fn(),
    ) {
        if mem::take(searching) {
            self.obey(self.tickets.found(is_empty), spawn_ticket);
        }
    }

    /// Until somebody unparks this worker, or, if the answer is false, for so
    /// long; it is searching then.
    fn park(&self, worker: usize, timeout: Duration) -> bool {
        let start = Instant::now();
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() && self.tickets.unpark(worker) {
                return false;
            }
            if !self.tickets.is_parked() {
                return true;
            }
            // A stray token makes one round more.
            thread::park_timeout(left);
        }
    }
}

/// Looks on for a while, and lets others have the core; true if there is a job.
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
        thread::yield_now();
    }
}
