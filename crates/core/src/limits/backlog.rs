//! [`Backlog`]: how long a job would wait now, by what the jobs before it are expected to take. It
//! is what [`Builder::max_wait`](crate::Builder::max_wait) limits.
//!
//! **What a job counts.** From when it is queued to the end of the step, it is *charged* with what
//! steps of its call site take: a mean of the last ones, from the pop to the end, pauses for a CPU
//! quota included. A stream (`stream_from_cpu`) is charged with what is left of all its steps
//! instead: it would share the threads with a later job until it ends. A future that waits for
//! something is not charged.
//!
//! **Room.** Each thread has room for nine tenths of `max_wait`: jobs of one site differ, which a
//! mean does not tell. A job is admitted while the charges before it are less than the room of all
//! threads, whatever its own is. No charge is more than the room of one thread, so a thread that
//! idles finds a job admitted though long ones run on all others.
//!
//! **Short jobs** pass the others, and do not wait for these. They have room of their own. The
//! others wait for them, so they are charged in the room of all jobs, too. A long job asks there, and
//! a permit, whose job is not known yet.
//!
//! **The semaphore** of a room counts microseconds, and has a fair queue of those who wait
//! (`Reserve`). A charge may be more than is left, which a semaphore cannot express: the rest is a
//! *debt*. What is given back pays the debt first. A submission looks whether there is room before
//! it takes it, so those that run at the same instant may all be admitted, one of each thread.
//!
//! **Obligations.** [safety] What is free, less the debt, plus all charges is the room, at any time
//! but within a call, in which there may be both, debt and what is free. [liveness] Who waits for
//! room is woken once the debt is paid.

use std::time::Duration;

use tokio::sync::{AcquireError, Semaphore};

use crate::metrics::call_sites::Mean;
use crate::panics::run_hook;
use crate::sync::{AtomicUsize, Ordering::SeqCst};

/// In a charge: it is one of a short job. The rest of it is microseconds.
const SHORT: u32 = 1 << 31;

pub(crate) struct Backlog {
    pub(crate) max_wait: Duration,
    /// The room of one thread, in microseconds.
    share: u32,
    /// Of all jobs, and of the short ones.
    rooms: [Room; 2],
    /// Of all steps: what a call site counts that is not known.
    pub(super) mean: Mean,
}

struct Room {
    /// In microseconds.
    free: Semaphore,
    debt: AtomicUsize,
}

impl Backlog {
    pub(super) fn new(max_wait: Duration, threads: usize) -> Self {
        // `Builder::max_wait` has a limit that fits.
        let share = (max_wait * 9 / 10).as_micros() as u32;
        let room = || Room {
            free: Semaphore::new(share as usize * threads),
            debt: AtomicUsize::new(0),
        };
        Self {
            max_wait,
            share,
            rooms: [room(), room()],
            mean: Mean::default(),
        }
    }

    pub(super) fn semaphores(&self) -> impl Iterator<Item = &Semaphore> {
        self.rooms.iter().map(|room| &room.free)
    }

    /// Whether a job would wait for no longer than it may.
    pub(super) fn admits(&self, is_short: bool) -> bool {
        let Room { free, debt } = &self.rooms[usize::from(is_short)];
        free.available_permits() > debt.load(SeqCst)
    }

    /// Where it counts.
    fn rooms(&self, charge: u32) -> &[Room] {
        &self.rooms[..=usize::from(charge & SHORT != 0)]
    }

    /// The charge of a job that takes so long, as far as is known.
    fn expect(&self, time: Option<Duration>, is_short: bool) -> u32 {
        let time = time.or_else(|| self.mean.get()).map(|it| it.as_micros());
        // An eighth of the room of a thread, if nothing is known.
        let micros = time.map_or(self.share / 8, |it| it.min(self.share.into()) as u32);
        micros.max(1) | if is_short { SHORT } else { 0 }
    }

    pub(super) fn charge(&self, time: Option<Duration>, is_short: bool) -> u32 {
        let charge = self.expect(time, is_short);
        let rooms = self.rooms(charge).iter();
        rooms.for_each(|room| room.take(charge & !SHORT));
        charge
    }

    /// Waits until there is room for all of it: of those who wait, each needs its own.
    pub(super) async fn acquire(&self) -> Result<u32, AcquireError> {
        let charge = self.expect(None, false);
        self.rooms[0].free.acquire_many(charge).await?.forget();
        Ok(charge)
    }

    pub(super) fn give_back(&self, charge: u32) {
        let rooms = self.rooms(charge).iter();
        rooms.for_each(|room| room.give_back(charge & !SHORT));
    }
}

impl Room {
    fn take(&self, micros: u32) {
        let micros = micros as usize;
        // (Before Tokio 1.51 this opens a semaphore that is closed. A lane looks whether it is
        // closed before it looks here.)
        let debt = micros - self.free.forget_permits(micros);
        self.debt.fetch_add(debt, SeqCst);
    }

    fn give_back(&self, micros: u32) {
        let micros = micros as usize;
        let pay = |debt: usize| Some(debt.saturating_sub(micros));
        let debt = self.debt.fetch_update(SeqCst, SeqCst, pay).unwrap_or(0);
        let free = micros.saturating_sub(debt);
        run_hook("the waker of a `Reserve`", || self.free.add_permits(free));
    }
}
