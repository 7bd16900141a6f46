//! How a priority's threads come to be while jobs are arriving.
//!
//! Whoever pushes a job and finds no threads asks for them, once, and goes on:
//! the submitter may be an I/O worker, which must not wait for threads to
//! start. The job rests in the queue meanwhile. No job is forgotten there:
//!
//! - *The threads come.* A pusher pushes, then looks whether they are there; the
//!   starter says that they are there, then looks at the queue and gives a kick
//!   for each job in it. Each has a `SeqCst` fence in between, so one of the two
//!   sees the other (both may: a kick too many finds an empty queue).
//! - *There are none to be had.* The starter first takes back that they were
//!   asked for, and then ends, with an error, all that is queued. Pushers and
//!   starter swap the same flag: a pusher whose swap came later finds that
//!   nobody has asked, and asks anew; the starter sees the push of the others.
//!
//! (Loom models in `tests/loom`.)

use crate::sync::{AtomicBool, Ordering::SeqCst, fence};

/// What a pusher has to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The threads are there: give them a kick.
    Kick,
    /// Ask for them.
    Ask,
    /// Somebody has asked.
    Rest,
}

pub(crate) struct Opening {
    asked: AtomicBool,
    open: AtomicBool,
}

impl Opening {
    pub(crate) fn new() -> Self {
        Self {
            asked: AtomicBool::new(false),
            open: AtomicBool::new(false),
        }
    }

    /// The threads are on their way, whoever asked: pushers need not.
    pub(crate) fn mark_asked(&self) {
        self.asked.swap(true, SeqCst);
    }

    /// After a push. What the caller looks at next is looked at after a fence.
    pub(crate) fn pushed(&self) -> Pushed {
        fence(SeqCst);
        if self.open.load(SeqCst) {
            Pushed::Kick
        } else if self.asked.swap(true, SeqCst) {
            Pushed::Rest
        } else {
            Pushed::Ask
        }
    }

    /// The starter's: from now on the threads can be given kicks. The caller
    /// then looks at the queue.
    pub(crate) fn opened(&self) {
        self.open.store(true, SeqCst);
        fence(SeqCst);
    }

    /// The starter's: there are none. The caller then ends what is queued.
    pub(crate) fn failed(&self) {
        // A store would not see the pushes of those who swapped before.
        self.asked.swap(false, SeqCst);
    }
}
