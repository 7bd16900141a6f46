//! [`Turn`]: the right to compute. The [`Order`] is behind a lock, and what waits in it are *tickets*:
//! what a job does when it has its turn.
//!
//! A job is not in the lane before it has its turn: its ticket hands it to the lane, and so the
//! lane's queue holds no more of these jobs than it has threads. A turn is a guard. It goes with the
//! job, and comes back with the CPU time of the step when it is dropped: after the step, by a panic,
//! or by the lane that refuses or cancels the job. Whoever queues a ticket, or gives a turn back,
//! gives out what there is. So the thread that ends one job hands the next to the lane, and finds it
//! there.
//!
//! - The lock is not held while a ticket runs. What a ticket does may give its turn back at once (a
//!   lane that was shut down refuses). The loop that called it goes on then, and not a loop in it:
//!   a shutdown with a million queued jobs takes no stack.
//! - A future has no turn while it is suspended, and a closure cannot wait for a job of its lane. So
//!   a job that waits for another never keeps the turn that the other needs.

use std::cell::Cell;
use std::hash::Hash;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use twolane_core::adapters::run_hook;

use super::order::Order;
use crate::sync::{Mutex, MutexGuard, thread_local};

/// A key behind an `Arc`.
pub(super) trait Id: Hash + Eq + Clone + Send + Sync + 'static {}
impl<K: Hash + Eq + Clone + Send + Sync + 'static> Id for K {}

/// What a job does when it has its turn.
pub(super) type Ticket<K> = Box<dyn FnOnce(Turn<K>) + Send>;

pub(super) struct Turns<K: Id>(pub(super) Mutex<Order<K, Ticket<K>>>);

thread_local! {
    /// The `Turns` of which a loop gives out turns on this thread.
    static GIVES_OUT: Cell<usize> = const { Cell::new(0) };
    /// When this thread's CPU time was read last, and what it was.
    static LAST: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

impl<K: Id> Turns<K> {
    pub(super) fn order(&self) -> MutexGuard<'_, Order<K, Ticket<K>>> {
        // User code runs under it: the key's `Hash`, `Eq` and `Drop`.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn give_out(self: &Arc<Self>) {
        let this = Arc::as_ptr(self).addr();
        let outer = GIVES_OUT.with(|of| of.replace(this));
        if outer == this {
            return;
        }
        // A call, whose end frees the lock.
        let next = || self.order().next();
        while let Some((key, charge, ticket)) = next() {
            let turn = Turn(self.clone(), key, charge, None);
            run_hook("a waker", || ticket(turn));
        }
        GIVES_OUT.with(|of| of.set(outer));
    }
}

impl<K: Id> std::fmt::Debug for Turns<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Turns")
    }
}

/// The right to compute for one step, until its drop: of whom, at which charge, and since when, by
/// [`clock`].
pub(super) struct Turn<K: Id>(Arc<Turns<K>>, K, u128, Option<(Instant, Duration)>);

impl<K: Id> Turn<K> {
    /// What counts a future of its key, until it is dropped.
    pub(super) fn count_future(&self) -> Arc<()> {
        let order = self.0.order();
        let known = order.keys.get(&self.1);
        known.map(|known| known.1.begun.clone()).unwrap_or_default()
    }

    pub(super) fn run<R>(mut self, f: impl FnOnce() -> R) -> R {
        self.3 = Some(clock());
        f()
    }
}

impl<K: Id> Drop for Turn<K> {
    fn drop(&mut self) {
        let Self(turns, key, charge, began) = self;
        let used = began.map_or(0, |(began, cpu_then)| {
            let (now, cpu) = clock();
            // A job that sleeps keeps a thread.
            let least = now.saturating_duration_since(began) / 4;
            cpu.saturating_sub(cpu_then).max(least).as_nanos().max(1)
        });
        turns.order().end(key, *charge, used);
        turns.give_out();
    }
}

/// The time, and the CPU time of this thread then, at most 10 µs ago, since to read it takes 0.4 µs.
/// Of jobs that are shorter, the one that finds the last reading too old is charged for those before
/// it.
fn clock() -> (Instant, Duration) {
    let now = Instant::now();
    let is_young = |(at, _): &(Instant, _)| now.duration_since(*at) < Duration::from_micros(10);
    let last = LAST.with(Cell::get).filter(is_young);
    let last = last.unwrap_or_else(|| (now, giveway::cpu_time().unwrap_or_default()));
    LAST.with(|of| of.set(Some(last)));
    last
}
