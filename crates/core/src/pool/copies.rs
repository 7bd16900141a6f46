//! The copies of a broadcast drain job (see `mod.rs`), and what each worker does with its own.
//!
//! The drain job counts as an active and searching worker (`idle.rs`) until a thread *takes* it:
//! to drain the queue, or to deactivate for it and, if a worker is still needed, to broadcast
//! again. Exactly one thread takes it.
//!
//! **It never waits for a worker that is not coming, while another one is idle.** A worker that
//! drains the queue already declines its copy. It looks at the queue later, but then it becomes
//! idle, and has no copy any more. If the last copy is at a worker that computes, or waits, no
//! worker would take the jobs that are pushed meanwhile, since each submitter sees a searching
//! worker. So a worker that has declined a copy *settles* it before it becomes idle: it takes
//! the drain job, unless another thread has.
//!
//! **A worker has one copy to settle at most**, the latest one. At most one worker is searching.
//! So there is no new broadcast before a thread has taken the one before.
//!
//! **Obligations.** [safety] One thread takes the drain job. [liveness] Some thread takes it, while
//! a worker is idle or becomes so.

use crate::sync::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// Where a worker comes to its copy.
#[derive(Clone, Copy)]
pub(crate) enum StackPlace {
    /// At the bottom of its stack.
    Bottom,
    /// Deeper, and it drains the queue further down.
    Draining,
    /// Deeper, in rayon's own work.
    Waiting,
}

/// What the worker does then.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It has taken the drain job, and drains the queue.
    Drains,
    /// All workers have declined: it settles the drain job now.
    Settles,
    /// It settles the drain job before it becomes idle.
    SettlesLater,
    /// It has used up its copy. The control thread settles the drain job after a pause.
    SettlesAfterPause,
    /// Another thread has taken the drain job.
    Nothing,
}

pub(crate) struct Copies {
    is_taken: AtomicBool,
    /// Workers that have not declined it yet.
    untried: AtomicUsize,
}

// `SeqCst`: this path is rare, and not worth a proof of less.
impl Copies {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            is_taken: AtomicBool::new(false),
            untried: AtomicUsize::new(workers),
        }
    }

    pub(crate) fn arrive(&self, at: StackPlace) -> Arrival {
        match at {
            StackPlace::Bottom if self.take() => Arrival::Drains,
            StackPlace::Draining if self.untried.fetch_sub(1, SeqCst) == 1 => Arrival::Settles,
            StackPlace::Draining => Arrival::SettlesLater,
            StackPlace::Waiting if !self.is_taken.load(SeqCst) => Arrival::SettlesAfterPause,
            StackPlace::Bottom | StackPlace::Waiting => Arrival::Nothing,
        }
    }

    /// True for the first caller.
    pub(crate) fn take(&self) -> bool {
        !self.is_taken.swap(true, SeqCst)
    }
}
