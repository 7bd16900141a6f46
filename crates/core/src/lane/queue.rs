//! The run queue of one priority: short jobs in FIFO order, behind them all other ready jobs, and
//! behind these the jobs that have yielded.
//!
//! A long future that yields ([`yield_if_due`](crate::yield_if_due)) must not delay a
//! short job that comes late. In one FIFO queue, the short job would wait for a slice
//! of each long future before it. So a job that yielded goes behind every job that has
//! not run yet, and behind every job that was woken by what it waited for.
//!
//! **Short jobs first.** At `Priority::Normal` a job whose call site is known to be short
//! (`call_sites/length.rs`) goes before those that are not. It waits for the steps that run, and
//! for no long one that is queued, but where the long ones have their turn (below). While no short
//! job is queued, the next one of an unknown site goes there too, so the lane gets to know the site
//! one job at a time. The jobs of a site that is known begin in the order in which they were
//! pushed, as long as what is known does not change.
//!
//! No thread of another priority helps: threads beside those of `Normal`, which sleep and wake up
//! for each short job, made threads of the I/O lane wait for a tick (`docs/contributors/kernels.md`).
//!
//! No job starves. After [`PASSES`] ready jobs in a row have passed those that yielded, one of
//! these has its turn. After short jobs have passed the others for [`PATIENCE`] ticks (100 ms), one
//! of these has its turn. A count would not do for these: where a hundred short jobs come for each
//! long one, a long one after each eight would make the short ones wait longer than in a FIFO
//! queue. A job that came before its site was known to be short does not use up the turn: what was
//! queued in a burst by a new site would wait for 100 ms each, behind later jobs of the same site.

use std::sync::Arc;

use crate::sync::{AtomicU32, AtomicUsize, Ordering::Relaxed, Queue};
use crate::task::{Runnable, ticker};

/// The most ready jobs in a row that pass those that yielded.
const PASSES: usize = 8;
/// For so many ticks short jobs pass the others.
const PATIENCE: u32 = 20;

#[derive(Default)]
pub(crate) struct RunQueue {
    /// Those that were known to be short, or tried, when they were pushed.
    short: Queue<Arc<dyn Runnable>>,
    ready: Queue<Arc<dyn Runnable>>,
    yielded: Queue<Arc<dyn Runnable>>,
    /// The tick since which short jobs have passed the others, or 0. A hint, as below.
    passed_since: AtomicU32,
    /// Ready jobs in a row that passed those that yielded. Two threads that pop at the same time
    /// may miscount by one.
    passed_yielded: AtomicUsize,
}

impl RunQueue {
    pub(super) fn push(&self, job: Arc<dyn Runnable>, is_short: bool) {
        let queue = if is_short { &self.short } else { &self.ready };
        queue.push(job);
    }

    /// Queues a job that was woken in its own step. A job that yielded goes behind those that have
    /// not run yet.
    ///
    /// This notifies no worker: the caller pops the next job itself, or notifies. Nor does it check
    /// whether the lane is closed: an active worker goes on until it finds the queue empty.
    pub(crate) fn put_back(&self, job: Arc<dyn Runnable>, yielded: bool) {
        if yielded {
            self.yielded.push(job);
        } else {
            // Its site may have turned long meanwhile.
            let is_short = job.is_short();
            self.push(job, is_short);
        }
    }

    pub(crate) fn pop(&self) -> Option<Arc<dyn Runnable>> {
        // Check for emptiness first: a `pop` that finds nothing costs a fence.
        let has_others = || !self.ready.is_empty() || !self.yielded.is_empty();
        if self.has_short() && !(has_others() && self.is_turn_of_others()) {
            if let Some(short) = self.short.pop() {
                return Some(short);
            }
        }
        let is_turn = || self.ready.is_empty() || self.is_turn_of_yielded();
        let yielded = (!self.yielded.is_empty() && is_turn()).then(|| self.yielded.pop());
        let yielded = yielded.flatten();
        let (has_yielded, other) = (yielded.is_some(), yielded.or_else(|| self.ready.pop()));
        if let Some(job) = other
            .as_ref()
            .filter(|_| self.passed_since.load(Relaxed) != 0)
        {
            let turn_goes_on = || !has_yielded && !self.ready.is_empty() && job.is_short();
            if !turn_goes_on() {
                self.passed_since.store(0, Relaxed);
            }
        }
        // Other threads may have taken what had its turn.
        other.or_else(|| self.yielded.pop().or_else(|| self.short.pop()))
    }

    /// A short job is about to pass the others. True if one of these has its turn instead.
    fn is_turn_of_others(&self) -> bool {
        let since = self.passed_since.load(Relaxed);
        if since == 0 {
            // At tick 0 their turn comes too soon, once.
            self.passed_since.store(ticker::ticks().max(1), Relaxed);
        }
        since != 0 && ticker::have_passed(since, PATIENCE)
    }

    /// One ready job more is about to pass those that yielded. True if one of these has its turn
    /// instead.
    fn is_turn_of_yielded(&self) -> bool {
        let passed = self.passed_yielded.load(Relaxed);
        self.passed_yielded
            .store((passed + 1) % (PASSES + 1), Relaxed);
        passed == PASSES
    }

    pub(super) fn has_short(&self) -> bool {
        !self.short.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.short.len() + self.ready.len() + self.yielded.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.short.is_empty() && self.ready.is_empty() && self.yielded.is_empty()
    }
}
