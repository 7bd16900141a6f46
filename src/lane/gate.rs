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
//! A waiter that has left (its future was dropped, its deadline passed) stays in
//! the queue, some 60 bytes, until its turn comes: then it is passed over. One
//! that was let in and leaves without having looked gives the place back. Who
//! comes while others wait waits behind them, so places go in the order of coming.
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
    closed: AtomicBool,
}

impl Gate {
    pub(crate) fn new(places: usize) -> Self {
        Self {
            free: AtomicUsize::new(places),
            waiting: Queue::new(),
            closed: AtomicBool::new(false),
        }
    }

    /// A place, if one is free and nobody waits for it.
    pub(crate) fn try_enter(&self) -> bool {
        self.waiting.is_empty() && self.take_place()
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
        loop {
            if self.closed.load(SeqCst) {
                while let Some(waiter) = self.waiting.pop() {
                    waiter.settle(CLOSED);
                }
                return;
            }
            if self.waiting.is_empty() || !self.take_place() {
                return;
            }
            if !self.let_next_in() {
                self.free.fetch_add(1, SeqCst);
                fence(SeqCst);
            }
        }
    }

    /// With a place in hand. False if there was nobody to take it.
    fn let_next_in(&self) -> bool {
        while let Some(waiter) = self.waiting.pop() {
            if waiter.settle(LET_IN) {
                return true;
            }
        }
        false
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

    /// It has not looked at its outcome, and never will. True if it was let in:
    /// the place is the caller's to give back.
    #[must_use]
    pub(crate) fn leave(&self) -> bool {
        let before = self.state.swap(LEFT, SeqCst);
        drop::<Option<Waker>>(self.awaiter.take());
        before == LET_IN
    }
}
