//! The run queue of one priority: short jobs in FIFO order, behind them all other ready jobs, and
//! behind these the jobs that have yielded.
//!
//! A long future that yields ([`yield_if_due`](crate::yield_if_due)) must not delay a
//! short job that comes late. In one FIFO queue, the short job would wait for a slice
//! of each long future before it. So a job that yielded goes behind every job that has
//! not run yet, and behind every job that was woken by what it waited for.
//!
//! **Short jobs first.** At `Priority::Normal` a job whose call site is known to be short
//! (`pace/length.rs`) goes before those that are not. It waits for the steps that run, and for no
//! long one that is queued, but where the long ones have their turn (below). While no short job is
//! queued, the next one of an unknown site goes there too (if it has no key), so the lane gets to
//! know the site one job at a time. The jobs of a site that is known begin in the order in which
//! they were pushed, as long as what is known does not change.
//!
//! While all threads run long ones, a thread of `High` pops the short jobs (`help.rs`).
//!
//! No job starves. While short jobs and others wait, the others have a fifth of the threads' time
//! ([`Shares`]). A count of jobs would not do: where a hundred short jobs come for each long one, a
//! long one after each eight would make the short ones wait longer than in a FIFO queue. After
//! [`PASSES`] ready jobs in a row have passed those that yielded, one of these has its turn.
//!
//! **Keys.** Jobs that have one wait elsewhere (`keyed.rs`). While some do, or a key has had more than
//! it is due, the order of keys says whether one of them is next, or one of these queues: all jobs
//! without a key are one key more.
//!
//! A step's time counts for the queue that its job was popped from, and not for the length of its
//! site: by that, short futures that yield for ever would count for the short jobs, which then never
//! had their turn. A job that is tried among the short ones, and shows that its site is long, counts
//! for the others.

use std::mem;
use std::sync::Arc;

use once_cell::race::OnceBox;

use super::keyed::Keyed;
use crate::key::Key;
use crate::pace::{Popped, Shares};
use crate::sync::{AtomicUsize, Ordering::Relaxed, Queue};
use crate::task::Runnable;

/// The most ready jobs in a row that pass those that yielded.
const PASSES: usize = 8;

pub(crate) struct RunQueue {
    /// Those that were known to be short, or tried, when they were pushed.
    short: Queue<Arc<dyn Runnable>>,
    ready: Queue<Arc<dyn Runnable>>,
    yielded: Queue<Arc<dyn Runnable>>,
    shares: Arc<Shares>,
    /// Ready jobs in a row that passed those that yielded. Two threads that pop at the same time
    /// may miscount by one.
    passed_yielded: AtomicUsize,
    /// Not set before the first job that has a key.
    keyed: OnceBox<Keyed>,
}

impl RunQueue {
    pub(crate) fn new(shares: Arc<Shares>) -> Self {
        Self {
            short: Queue::default(),
            ready: Queue::default(),
            yielded: Queue::default(),
            shares,
            passed_yielded: AtomicUsize::new(0),
            keyed: OnceBox::new(),
        }
    }

    #[inline]
    pub(crate) fn push(&self, job: Arc<dyn Runnable>, is_short: bool, key: Option<&Key>) {
        if let Some(key) = key {
            return self.push_keyed(job, is_short, key);
        }
        let queue = if is_short { &self.short } else { &self.ready };
        queue.push(job);
    }

    #[cold]
    fn push_keyed(&self, job: Arc<dyn Runnable>, is_short: bool, key: &Key) {
        let new = || Box::new(Keyed::new(self.shares.anew()));
        let keyed = self.keyed.get_or_init(new);
        keyed.push(key.clone(), job, is_short);
    }

    /// Queues a job that was woken in its own step. A job that yielded goes behind those that have
    /// not run yet.
    ///
    /// This notifies no worker: the caller pops the next job itself, or notifies. Nor does it check
    /// whether the lane is closed: an active worker goes on until it finds the queue empty.
    pub(crate) fn put_back(&self, job: Arc<dyn Runnable>, yielded: bool) {
        let key = job.key().cloned();
        if yielded && key.is_none() {
            self.yielded.push(job);
        } else {
            // Its site may have turned long meanwhile.
            let is_short = !yielded && job.is_short();
            self.push(job, is_short, key.as_ref());
        }
    }

    /// Call [`end_turn`](Self::end_turn) once the job's step has ended, or if it will not run.
    #[inline]
    pub(crate) fn pop(&self, popped: &mut Popped) -> Option<Arc<dyn Runnable>> {
        let keyed = self.keyed.get().filter(|keyed| keyed.decides());
        let next = keyed.and_then(|keyed| self.pop_keyed(keyed, popped));
        next.or_else(|| self.pop_plain(popped))
    }

    #[cold]
    fn pop_keyed(&self, keyed: &Keyed, popped: &mut Popped) -> Option<Arc<dyn Runnable>> {
        keyed.pop(popped, || self.has_plain(), |popped| self.pop_plain(popped))
    }

    /// Any number of times.
    #[cold]
    pub(crate) fn end_turn(&self, popped: &mut Popped) {
        if let (Some(turn), Some(keyed)) = (popped.turn.take(), self.keyed.get()) {
            keyed.end(&turn, mem::take(&mut popped.computed), popped.is_short);
        }
    }

    fn pop_plain(&self, popped: &mut Popped) -> Option<Arc<dyn Runnable>> {
        (popped.is_short, popped.has_key) = (false, false);
        // Check for emptiness first: a `pop` that finds nothing costs a fence.
        if self.has_short() {
            let others_wait = !self.ready.is_empty() || !self.yielded.is_empty();
            let short = || self.short.pop();
            let is_turn = self.shares.is_turn_of_short(others_wait);
            if let Some(short) = is_turn.then(short).flatten() {
                popped.is_short = true;
                return Some(short);
            }
        } else {
            self.shares.no_short_waits();
        }
        let is_turn = || self.ready.is_empty() || self.is_turn_of_yielded();
        let yielded = (!self.yielded.is_empty() && is_turn()).then(|| self.yielded.pop());
        let other = yielded.flatten().or_else(|| self.ready.pop());
        // Other threads may have taken what had its turn.
        other.or_else(|| self.yielded.pop().or_else(|| self.short.pop()))
    }

    /// Whether a thread of another priority may [`pop_short`](Self::pop_short): not while the order of
    /// keys decides.
    pub(crate) fn may_help(&self) -> bool {
        self.has_short() && !self.keyed.get().is_some_and(Keyed::decides)
    }

    #[cold]
    pub(crate) fn pop_short(&self) -> Option<Arc<dyn Runnable>> {
        self.may_help().then(|| self.short.pop()).flatten()
    }

    /// One ready job more is about to pass those that yielded. True if one of these has its turn
    /// instead.
    fn is_turn_of_yielded(&self) -> bool {
        let passed = self.passed_yielded.load(Relaxed);
        self.passed_yielded
            .store((passed + 1) % (PASSES + 1), Relaxed);
        passed == PASSES
    }

    pub(crate) fn shares(&self) -> &Shares {
        &self.shares
    }

    pub(super) fn has_short(&self) -> bool {
        !self.short.is_empty()
    }

    /// What the jobs of keys wait in, once there was one.
    pub(super) fn keyed(&self) -> Option<&Keyed> {
        self.keyed.get()
    }

    fn keyed_len(&self) -> usize {
        self.keyed.get().map_or(0, Keyed::len)
    }

    pub(crate) fn len(&self) -> usize {
        self.short.len() + self.ready.len() + self.yielded.len() + self.keyed_len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.has_plain() && self.keyed_len() == 0
    }

    fn has_plain(&self) -> bool {
        !(self.short.is_empty() && self.ready.is_empty() && self.yielded.is_empty())
    }
}
