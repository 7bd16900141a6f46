//! How many workers drain the queue, and which thread wakes one more.
//!
//! An *active* worker drains the queue. A *drain job* (see `mod.rs`) makes one worker
//! active, and that worker is counted from the spawn of the drain job until it
//! deactivates. At most one worker is also *searching*: its drain job has not started,
//! or it looks for a job. An active worker that finds
//! nothing to do, and is the only active one, may stay active and *park*.
//!
//! - **A submitter** pushes a job and wakes the parked worker. If no worker is parked,
//!   it spawns a drain job, but only if no worker is searching and not all workers are
//!   active. So it pays for a wake-up only when the lane needs a thread that sleeps,
//!   and not for each job.
//! - **A searching worker that finds a job** stops searching. If more jobs are queued,
//!   it spawns the next drain job. So the workers wake one another, and the submitter
//!   goes on after one wake-up.
//! - **A worker that cannot drain**, since it waits inside another job, deactivates. If
//!   an active worker is still needed, it broadcasts a drain job (see `mod.rs` and
//!   `copies.rs`).
//!
//! **The parked worker** is unparked by a push, by a worker that deactivates and leaves a job
//! behind, by a caller that needs all workers in rayon (`install`, and the shutdown), and by
//! its own timeout (`drain.rs`).
//!
//! The queue never holds a job without an active worker that will look for it. A
//! submitter pushes and then reads the word. A searching worker that stops (with a job
//! or without one), a worker that parks and a worker that deactivates change the word
//! and then read the queue. Each has a `SeqCst` fence in between, so at least one of
//! the two sees the other's change. A submitter that sees a searching worker may rely
//! on that worker's look at the queue. (The loom models are in `tests/models`.)
//!
//! **Obligations.** [liveness] While a job is queued, a worker is active that will look, or a drain
//! job is on its way. [safety] At most one worker searches, one is parked, and no more are active
//! than there are.
//!
//! Orderings: all accesses to the word are `SeqCst`, since the proof needs one order of
//! the changes of the word and of the queue.

use crate::sync::{AtomicUsize, Ordering::SeqCst, fence};

/// The number of active workers is in the lower half of the word, and above it whether
/// one of them is searching.
const ACTIVE: usize = 1;
const SEARCHING: usize = 1 << (usize::BITS / 2);
/// The one active worker is parked. The lower half holds its number instead of the
/// count.
const PARKED: usize = 1 << (usize::BITS - 1);

/// One active worker.
fn active(is_searching: bool) -> usize {
    ACTIVE + SEARCHING * usize::from(is_searching)
}

/// What the caller has to do to wake a worker.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wakeup {
    Nothing,
    /// Spawn a drain job; its worker counts as active and searching.
    Spawn,
    /// Unpark this worker; it counts as active and searching.
    Unpark(usize),
}

pub(crate) struct Idle {
    word: AtomicUsize,
    workers: usize,
}

impl Idle {
    pub(crate) fn new(workers: usize) -> Self {
        let word = AtomicUsize::new(0);
        Self { word, workers }
    }

    fn swap(&self, from: usize, to: usize) -> Result<usize, usize> {
        self.word.compare_exchange(from, to, SeqCst, SeqCst)
    }

    /// Call after a push and a fence.
    pub(crate) fn notify(&self) -> Wakeup {
        let may_spawn = |word| word < SEARCHING && word < self.workers * ACTIVE;
        let woken = |word| match word {
            PARKED.. => Some(ACTIVE + SEARCHING),
            _ => may_spawn(word).then_some(word + ACTIVE + SEARCHING),
        };
        match self.word.fetch_update(SeqCst, SeqCst, woken) {
            Ok(parked @ PARKED..) => Wakeup::Unpark(parked & !PARKED),
            Ok(_) => Wakeup::Spawn,
            Err(_) => Wakeup::Nothing,
        }
    }

    /// The parked worker calls it. False if another thread has unparked the worker.
    pub(crate) fn is_parked(&self) -> bool {
        self.word.load(SeqCst) & PARKED != 0
    }

    /// Whether a worker is searching; only a hint.
    pub(crate) fn has_searcher(&self) -> bool {
        let word = self.word.load(SeqCst);
        word & PARKED == 0 && word >= SEARCHING
    }

    /// A searching worker has taken a job, or turns to other work. The answer says how
    /// to wake another worker.
    pub(crate) fn found(&self, is_empty: impl FnOnce() -> bool) -> Wakeup {
        self.lower(SEARCHING, is_empty)
    }

    /// An active worker has nothing to do. True if it may park now, as number `worker`.
    ///
    /// If false, its state has not changed; or it is searching, if `must_not_park`
    /// returned true.
    pub(crate) fn try_park(
        &self,
        worker: usize,
        searching: &mut bool,
        must_not_park: impl FnOnce() -> bool,
    ) -> bool {
        if self.swap(active(*searching), PARKED | worker).is_err() {
            return false;
        }
        fence(SeqCst);
        if must_not_park() {
            // An error means that another thread has just unparked it: the same result.
            let _ = self.unpark(worker);
            *searching = true;
            return false;
        }
        true
    }

    /// The parked worker calls it, or a thread that needs the worker elsewhere. False
    /// if another thread was first.
    pub(crate) fn unpark(&self, worker: usize) -> bool {
        self.swap(PARKED | worker, ACTIVE + SEARCHING).is_ok()
    }

    /// Unparks the worker that is parked, if any, for a thread that needs it elsewhere.
    /// The caller then unparks the returned worker's thread.
    pub(crate) fn unpark_any(&self) -> Option<usize> {
        let worker = self.word.load(SeqCst) & !PARKED;
        self.unpark(worker).then_some(worker)
    }

    /// A worker stops being active, unless a job came meanwhile and no other worker is
    /// sure to take it. On `Wakeup::Spawn` the caller goes on as the active worker, or
    /// spawns a drain job for another one.
    pub(crate) fn deactivate(&self, searching: bool, is_empty: impl FnOnce() -> bool) -> Wakeup {
        self.lower(active(searching), is_empty)
    }

    fn lower(&self, by: usize, is_empty: impl FnOnce() -> bool) -> Wakeup {
        self.word.fetch_sub(by, SeqCst);
        fence(SeqCst);
        match is_empty() {
            true => Wakeup::Nothing,
            false => self.notify(),
        }
    }
}
