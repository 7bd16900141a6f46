//! Who may come in: the places of a priority with a
//! [`queue_limit`](crate::Builder::queue_limit), and those who wait for one.
//!
//! No lock, since jobs give their places back on threads of little weight, and
//! whoever waits for one may be the I/O lane. There is a count of free places and
//! a queue of waiters, and whoever changes one of them looks at both:
//!
//! - *A place comes back.* Its giver counts it, then looks for waiters.
//! - *A waiter comes.* It queues up, then looks for free places.
//!
//! Each has a `SeqCst` fence in between, so one of the two sees the other, and
//! lets in whoever is first in the queue ([`Gate::let_in`]). That takes a place
//! in hand before it takes out a waiter; if another was faster and nobody waits,
//! the place goes back by the first rule, so that nobody who came meanwhile is
//! overlooked.
//!
//! Who comes while others wait waits behind them, so places go in the order of
//! coming. One that was let in and leaves without having looked gives the place
//! back. One that leaves before stays in the queue and is passed over when its turn
//! comes; where many leave and no place comes (a load that is shed, on a lane that
//! is stuck), they are swept out now and then: the queue is moved, without them, to
//! a second one, which goes before. That is put off while somebody is being let in.
//! Nobody is let in meanwhile, and who sweeps lets in afterwards: by the same rule,
//! one of the two sees the other.
//!
//! "No lock" is as true as of the queue: a `SegQueue`'s pop waits for a push that
//! has begun, for a few instructions.
//!
//! (Loom models in `tests/loom`.)

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::job::completion::wake;
use crate::sync::Ordering::SeqCst;
use crate::sync::{AtomicBool, AtomicU8, AtomicUsize, AtomicWaker, Queue, fence};

pub(crate) struct Gate {
    free: AtomicUsize,
    waiting: Queue<Arc<Waiter>>,
    /// Those that a sweep has kept.
    first: Queue<Arc<Waiter>>,
    /// How many are letting in, or [`SWEEPING`].
    letting_in: AtomicUsize,
    /// Since the last sweep; a hint.
    left: AtomicUsize,
    closed: AtomicBool,
}

/// So many leave before it is worth a look at all who wait.
const MANY: usize = 64;
const SWEEPING: usize = usize::MAX;

impl Gate {
    pub(crate) fn new(places: usize) -> Self {
        Self {
            free: AtomicUsize::new(places),
            waiting: Queue::new(),
            first: Queue::new(),
            letting_in: AtomicUsize::new(0),
            left: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// A place, if one is free and nobody waits for it. (Who has left and is still in
    /// the queue counts as one who waits, until the next place comes.)
    pub(crate) fn try_enter(&self) -> bool {
        self.nobody_waits() && self.take_place()
    }

    fn nobody_waits(&self) -> bool {
        self.waiting.is_empty() && self.first.is_empty()
    }

    fn next(&self) -> Option<Arc<Waiter>> {
        self.first.pop().or_else(|| self.waiting.pop())
    }

    /// Queues up.
    pub(crate) fn wait(&self, waiter: Arc<Waiter>) {
        self.waiting.push(waiter);
        fence(SeqCst);
        self.let_in();
    }

    /// A place comes back.
    pub(crate) fn leave(&self) {
        self.free.fetch_add(1, SeqCst);
        fence(SeqCst);
        self.let_in();
    }

    /// Nobody is let in any more; those who wait are told.
    pub(crate) fn close(&self) {
        self.closed.swap(true, SeqCst);
        fence(SeqCst);
        self.let_in();
    }

    fn take_place(&self) -> bool {
        let one_less = |free: usize| free.checked_sub(1);
        self.free.fetch_update(SeqCst, SeqCst, one_less).is_ok()
    }

    fn let_in(&self) {
        if self.closed.load(SeqCst) {
            while let Some(waiter) = self.next() {
                waiter.settle(CLOSED);
            }
            return;
        }
        if self.nobody_waits() {
            return;
        }
        let one_more = |n: usize| (n != SWEEPING).then(|| n + 1);
        if self
            .letting_in
            .fetch_update(SeqCst, SeqCst, one_more)
            .is_err()
        {
            return;
        }
        while !self.nobody_waits() && self.take_place() {
            if !self.let_next_in() {
                self.free.fetch_add(1, SeqCst);
                fence(SeqCst);
            }
        }
        self.letting_in.fetch_sub(1, SeqCst);
    }

    /// With a place in hand. False if there was nobody to take it.
    fn let_next_in(&self) -> bool {
        while let Some(waiter) = self.next() {
            if waiter.settle(LET_IN) {
                return true;
            }
        }
        false
    }

    /// A waiter leaves, or its deadline has come. It is not asked again.
    pub(crate) fn give_up(&self, waiter: &Waiter) {
        if waiter.leave() {
            self.leave();
            return;
        }
        let left = self.left.fetch_add(1, SeqCst);
        if left >= MANY && left >= (self.waiting.len() + self.first.len()) / 2 {
            self.sweep();
        }
    }

    pub(crate) fn sweep(&self) {
        let nobody = self
            .letting_in
            .compare_exchange(0, SWEEPING, SeqCst, SeqCst);
        if nobody.is_err() {
            return;
        }
        self.left.store(0, SeqCst);
        // No more than are there now, or it might go on for ever.
        for queue in [&self.first, &self.waiting] {
            for waiter in (0..queue.len()).map_while(|_| queue.pop()) {
                if waiter.waits() {
                    self.first.push(waiter);
                }
            }
        }
        self.letting_in.swap(0, SeqCst);
        fence(SeqCst);
        self.let_in();
    }
}

const WAITS: u8 = 0;
const LET_IN: u8 = 1;
const CLOSED: u8 = 2;
const EXPIRED: u8 = 3;
const LEFT: u8 = 4;

/// What became of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    LetIn,
    Closed,
    Expired,
}

pub(crate) struct Waiter {
    state: AtomicU8,
    awaiter: AtomicWaker,
}

impl Waiter {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU8::new(WAITS),
            awaiter: AtomicWaker::new(),
        })
    }

    /// False if it had settled, or left, before.
    fn settle(&self, to: u8) -> bool {
        let settled = self.state.compare_exchange(WAITS, to, SeqCst, SeqCst);
        if settled.is_ok() {
            wake(self.awaiter.take());
        }
        settled.is_ok()
    }

    pub(crate) fn expire(&self) {
        self.settle(EXPIRED);
    }

    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Outcome> {
        if self.state.load(SeqCst) == WAITS {
            self.awaiter.register(cx.waker());
        }
        match self.state.load(SeqCst) {
            WAITS => Poll::Pending,
            LET_IN => Poll::Ready(Outcome::LetIn),
            CLOSED => Poll::Ready(Outcome::Closed),
            EXPIRED => Poll::Ready(Outcome::Expired),
            _ => unreachable!("whoever has left asks no more"),
        }
    }

    fn waits(&self) -> bool {
        self.state.load(SeqCst) == WAITS
    }

    /// It has not looked at its outcome, and never will. True if it was let in: the
    /// place is the caller's to give back.
    fn leave(&self) -> bool {
        let before = self.state.swap(LEFT, SeqCst);
        drop::<Option<Waker>>(self.awaiter.take());
        before == LET_IN
    }
}
