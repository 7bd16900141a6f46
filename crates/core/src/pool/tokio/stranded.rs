//! Finds jobs that wait beside a parked worker of a Tokio runtime.
//!
//! Tokio (1.54) lets a worker that was not searching for tasks park without a last look at the
//! queue. What is pushed while it is about to park wakes no worker, and waits for the next push, or
//! for the end of another worker's step. If that step waits for what was pushed, both wait forever.
//! (The test in `tests.rs` hangs without [`Stranded::must_look`]. With a Tokio where it does not,
//! this file can go.)
//!
//! So a push that finds some worker busy asks the ticker to look, every 5 ms for as long as jobs
//! are queued. If a worker is parked then, the ticker spawns an empty task, which wakes it: a woken
//! worker looks at the whole queue. While no worker is busy, none is about to park without a look.
//!
//! **The end of the looks.** A push pushes, and then asks whether the ticker rests. The ticker
//! notes that it rests, and then looks once more. Each has a `SeqCst` fence in between, so one of
//! the two sees the other: the push begins the looks anew, or the last look finds the job.
//!
//! **Obligation.** [liveness] While a job is queued, either no worker is parked that has not looked
//! since, or the ticker looks.

use crate::sync::{AtomicBool, AtomicUsize, Ordering::SeqCst, fence};

pub(crate) struct Stranded {
    /// Whether the ticker does not look.
    rests: AtomicBool,
    /// How many workers are parked, or about to.
    pub(crate) parked: AtomicUsize,
    workers: usize,
}

impl Stranded {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            rests: AtomicBool::new(true),
            parked: AtomicUsize::new(0),
            workers,
        }
    }

    /// Call after a push and a fence. True if the ticker has to [`tick`](Self::tick) at each tick,
    /// until that is false.
    pub(crate) fn must_look(&self) -> bool {
        // A hint: whether some worker has tasks, or looks for some.
        let is_some_busy = self.parked.load(SeqCst) < self.workers;
        is_some_busy && self.rests.load(SeqCst) && self.rests.swap(false, SeqCst)
    }

    /// `wake` wakes a parked worker, if there is one. False if the looks end.
    pub(crate) fn tick(&self, has_queued: impl Fn() -> bool, wake: impl FnOnce()) -> bool {
        if !has_queued() {
            // A swap, which costs no more, for loom: it does not order a plain store after the swap
            // of a push that it has not seen.
            self.rests.swap(true, SeqCst);
            fence(SeqCst);
            if !has_queued() {
                return false;
            }
            self.rests.swap(false, SeqCst);
        }
        if self.parked.load(SeqCst) > 0 {
            wake();
        }
        true
    }
}
