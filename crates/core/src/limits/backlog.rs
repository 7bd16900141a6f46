//! [`Backlog`]: how long a job would wait now, by what the jobs before it are expected to take. It
//! is what [`Builder::max_wait`](crate::Builder::max_wait) limits.
//!
//! **What a job counts.** From when it is queued to the end of the step, it is *charged* with what
//! steps of its call site take: a mean of the last ones, from the pop to the end, pauses for a CPU
//! quota included. A future that waits for something is not charged, nor is a stream that waits
//! for its reader. Nor is a permit, whose job is not there yet.
//!
//! **Room.** Each thread has room for nine tenths of `max_wait`: jobs of one site differ, which a
//! mean does not tell. No charge is more than the room of one thread, so a thread that idles finds
//! a job admitted though long ones run on all others, as long as short jobs use little of it.
//!
//! **Short jobs and others** share the threads ([`Shares`]), so each kind waits for its own, over
//! the part of the threads that it gets. A short job is admitted while the short ones fill less
//! than four fifths of the room. Another one is admitted while the others fill less than what short
//! jobs leave. That is taken to be half more than they used of late, and four fifths at most: of a
//! room of 450 ms, where short jobs used 40 % of the time, the others have 180 ms; where they used
//! none, all of it. A permit that is tried asks as one of the others, unless its handle has a name.
//!
//! **Keys.** A job of a key waits for those of its key, which has its part of the threads: so it is
//! admitted while these fill less than that part of the room (`keys.rs`), and while all jobs fill
//! less than the room. If they fill more, it is admitted if it fits into the part itself. All jobs
//! without a key are one more key of weight 1: beside one key, they have half of the room.
//!
//! **Waiters** for room (`Reserve`) are served in FIFO order, by a semaphore whose permits are
//! *turns*. What kind of job a waiter has is not known, so it needs room for both. The thread that
//! frees room gives a turn to the first waiter, but no more turns than there are threads before
//! their jobs are queued: the next waiter looks at what these count. A caller that keeps its permit
//! must not keep others from theirs, so turns are counted for a *window* of `max_wait`, and forgotten
//! at its end. The turn of a waiter that gave up goes to the next one, also to one that comes later.
//!
//! **Obligations.** [safety] What is charged is given back once. [liveness] A waiter gets a turn
//! once there is room: it counts itself and then looks for room, and a thread that gives back changes
//! the sums and then looks for waiters; all of it is `SeqCst`. Room also comes with time, when a
//! window ends and as what was used is forgotten: so each waiter looks again after `max_wait`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{AcquireError, Semaphore};

use super::keys::{Keys, Slot};
use crate::guard::on_drop;
use crate::pace::Shares;
use crate::pace::clock::now;
use crate::panics::run_hook;
use crate::sync::{AtomicU64, AtomicUsize, Ordering::SeqCst};

/// In a charge: it is one of a short job. The rest of it is microseconds, of which there are fewer
/// than [`RESERVED`].
const SHORT: u32 = 1 << 31;
/// The charge of a waiter that has had its turn, and so is not refused. It counts in
/// [`Backlog::recent`].
const RESERVED: u32 = 1 << 30;
/// In [`Backlog::charged`].
const OF_KEYS: usize = 2;
/// In [`Backlog::recent`]: how many there are.
const TURNS: u64 = (1 << 32) - 1;

pub(crate) struct Backlog {
    pub(crate) max_wait: Duration,
    threads: u64,
    /// The room of one thread, in microseconds.
    share: u32,
    /// What is charged, in microseconds: others, short ones, and the jobs of keys.
    charged: [AtomicU64; 3],
    keys: Arc<Keys>,
    /// The turns of this window whose job is not queued yet; in the high half, which window it is.
    recent: AtomicU64,
    /// Those that no waiter has taken; closed, it ends all waits.
    pub(super) turns: Semaphore,
    waiters: AtomicUsize,
    shares: Arc<Shares>,
    /// See [`used`](Self::used).
    usage: AtomicU64,
}

impl Backlog {
    pub(super) fn new(
        max_wait: Duration,
        threads: usize,
        shares: &Arc<Shares>,
        keys: &Arc<Keys>,
    ) -> Self {
        Self {
            max_wait,
            threads: threads as u64,
            // `Builder::max_wait` has a limit that fits.
            share: (max_wait * 9 / 10).as_micros() as u32,
            charged: Default::default(),
            keys: keys.clone(),
            recent: AtomicU64::new(0),
            turns: Semaphore::new(0),
            waiters: AtomicUsize::new(0),
            shares: shares.clone(),
            usage: AtomicU64::new(0),
        }
    }

    /// Whether a job would wait for no longer than it may.
    pub(super) fn admits(&self, is_short: bool) -> bool {
        let [others, short, _] = self.charged();
        // Beside the keys, all jobs without one are one more.
        let room = self.room() / (1 + self.keys.weights());
        if is_short {
            return short == 0 || short < room * 4 / 5;
        }
        // For so long may short jobs pass the others yet, if there are any.
        let may_pass = (short > 0).then(|| self.shares.may_pass() / 5);
        let left = 1.0 - (1.5 * self.used(Duration::ZERO)).min(0.8);
        others == 0 || ((others + may_pass.unwrap_or(0)) as f64) < room as f64 * left
    }

    /// As [`admits`](Self::admits), for a job of a key that will hold a thread for so long.
    pub(super) fn admits_key(&self, slot: Slot, time: Option<Duration>) -> bool {
        let [others, short, of_keys] = self.charged();
        let (own, other_keys) = self.keys.charged(slot);
        let weight = u64::from(slot.weight);
        let weights = weight + other_keys + u64::from(others + short > 0);
        let share = self.room() * weight / weights;
        let is_free = others + short + of_keys < self.room();
        (own == 0 || own < share) && (is_free || own + u64::from(self.expect(time)) <= share)
    }

    fn charged(&self) -> [u64; 3] {
        [0, 1, 2].map(|kind: usize| self.charged[kind].load(SeqCst))
    }

    fn room(&self) -> u64 {
        u64::from(self.share) * self.threads
    }

    pub(super) fn admits_waiter(&self) -> bool {
        let word = self.recent.load(SeqCst);
        let is_over = word >> 32 != self.window();
        (is_over || word & TURNS < self.threads) && self.admits(true) && self.admits(false)
    }

    fn window(&self) -> u64 {
        (now() / self.max_wait.as_nanos() as u64) & TURNS
    }

    /// Adds to what short jobs used of the threads' time, and returns that: the part of the last
    /// two `max_wait`, more or less, since it decays. (In the low half of the word; in the high one
    /// is when that was, in thousandths of this time. A hint: two threads may add at once.)
    pub(super) fn used(&self, took: Duration) -> f64 {
        let window = 2 * self.max_wait.as_nanos() as u64;
        let (at, word) = ((now() / (window / 1000)) as u32, self.usage.load(SeqCst));
        // Less than 0 if another thread has read the clock later.
        let passed = (at.wrapping_sub((word >> 32) as u32) as i32).clamp(0, 1000);
        let before = f64::from(word as u32) / f64::from(u32::MAX) * f64::from(1000 - passed) / 1e3;
        let used = before + took.as_nanos() as f64 / (window * self.threads) as f64;
        if passed > 0 || !took.is_zero() {
            let part = (used.min(1.0) * f64::from(u32::MAX)) as u32;
            self.usage
                .store((u64::from(at) << 32) | u64::from(part), SeqCst);
        }
        used
    }

    /// What a job counts that takes so long, as far as is known.
    fn expect(&self, time: Option<Duration>) -> u32 {
        let time = time.map(|it| it.as_micros());
        // An eighth of the room of a thread, if nothing is known.
        let micros = time.map_or(self.share / 8, |it| it.min(self.share.into()) as u32);
        micros.max(1)
    }

    /// Returns the charge of a job that is queued. `slot`: that of its key.
    pub(super) fn charge(&self, time: Option<Duration>, is_short: bool, slot: Option<Slot>) -> u32 {
        let micros = self.expect(time);
        if let Some(slot) = slot {
            self.keys.charge(slot, micros.into());
            self.charged[OF_KEYS].fetch_add(micros.into(), SeqCst);
            return micros;
        }
        self.charged[usize::from(is_short)].fetch_add(micros.into(), SeqCst);
        micros | if is_short { SHORT } else { 0 }
    }

    pub(super) fn reserve(&self) -> u32 {
        let window = self.window();
        let one_more = |word| match word >> 32 == window {
            true => Some(word + 1),
            false => Some((window << 32) | 1),
        };
        let _ = self.recent.fetch_update(SeqCst, SeqCst, one_more);
        RESERVED
    }

    pub(super) fn give_back(&self, charge: u32, slot: Option<Slot>) {
        let is_short = charge & SHORT != 0;
        let kind = slot.map_or(usize::from(is_short), |_| OF_KEYS);
        let charged = &self.charged[kind];
        // (If its window is over, it is one of another, which may count one more then.)
        let one_less = |word| (word & TURNS > 0).then(|| word - 1);
        match charge {
            0 => return,
            RESERVED => _ = self.recent.fetch_update(SeqCst, SeqCst, one_less),
            _ => {
                let micros = (charge & !SHORT).into();
                slot.into_iter()
                    .for_each(|it| self.keys.discharge(it, micros));
                charged.fetch_sub(micros, SeqCst);
            }
        }
        self.give_turns();
    }

    /// Waits for a turn, and returns the charge that comes with it.
    pub(super) async fn acquire(&self) -> Result<u32, AcquireError> {
        self.waiters.fetch_add(1, SeqCst);
        let _waits = on_drop(|| _ = self.waiters.fetch_sub(1, SeqCst));
        self.give_turns();
        self.turns.acquire().await?.forget();
        Ok(RESERVED)
    }

    /// Gives turns to the waiters, as long as there is room. (One may be left over, for the next
    /// that comes.)
    pub(super) fn give_turns(&self) {
        let waits = || self.waiters.load(SeqCst) > 0 && self.turns.available_permits() == 0;
        while waits() && self.admits_waiter() {
            self.reserve();
            run_hook("the waker of a `Reserve`", || self.turns.add_permits(1));
        }
    }

    /// Nothing is charged, and no turn is kept but one that is left over.
    #[cfg(test)]
    #[allow(dead_code, reason = "for the model")]
    pub(crate) fn is_free(&self) -> bool {
        let turns = (self.recent.load(SeqCst) & TURNS) as usize;
        let charged = self.charged.iter().all(|it| it.load(SeqCst) == 0);
        charged && turns <= self.turns.available_permits()
    }
}
