//! Which permit covers what a thread submits.
//!
//! A job that waits for another must not wait for a permit that it holds itself.
//! So what a job submits goes in by the job's own permit: on its thread while it
//! runs, and inside of what it gave to `spawn_io`, as long as the job or another
//! one of its family holds the permit. Code on the lane's threads that is part of
//! no known job (a stolen child of rayon's, a destructor) goes in without one; or, where
//! its worker waits inside another job, by that job's.

use std::mem;
use std::ptr;
use std::sync::{Arc, Weak};

use tokio::sync::OwnedSemaphorePermit;

use super::{Lane, thread};
use crate::task::QueuePermit;

#[derive(Clone, Default)]
pub(crate) enum Inherited {
    /// A submission needs a permit of its own.
    #[default]
    No,
    /// A job of the lane submits that holds none itself, or an unknown one.
    Free(Weak<Lane>),
    By(QueuePermit),
    /// On the I/O lane: a job's future may go on for long after the job.
    AsLongAsHeld(Weak<OwnedSemaphorePermit>),
}

/// Until the answer is dropped, that covers what this thread submits.
pub(crate) fn enter(inherited: Inherited) -> impl Drop {
    struct Before(Inherited);
    impl Drop for Before {
        fn drop(&mut self) {
            drop(thread::set_inherited(mem::take(&mut self.0)));
        }
    }
    Before(thread::set_inherited(inherited))
}

/// What covers a submission to `lane` by this thread.
pub(crate) fn inherited(lane: &Arc<Lane>) -> Inherited {
    if !lane.has_limits() {
        return Inherited::No;
    }
    let here = match thread::inherited() {
        Inherited::AsLongAsHeld(permit) => permit.upgrade().map_or(Inherited::No, Inherited::By),
        other => other,
    };
    match here {
        Inherited::By(permit) if lane.has_issued(&permit) => Inherited::By(permit),
        Inherited::Free(of) if ptr::eq(of.as_ptr(), &raw const **lane) => Inherited::Free(of),
        _ if thread::is_of_lane(lane) => Inherited::Free(Arc::downgrade(lane)),
        _ => Inherited::No,
    }
}

impl Inherited {
    /// What of it goes with a future to the I/O lane.
    pub(crate) fn for_io(self) -> Self {
        match self {
            Self::By(permit) => Self::AsLongAsHeld(Arc::downgrade(&permit)),
            other => other,
        }
    }
}
