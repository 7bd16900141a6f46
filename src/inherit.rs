//! Which permit covers what a thread submits.
//!
//! A job that waits for another must not wait for a permit that it holds itself.
//! So what a job submits goes in by the job's own permit: on its thread while it
//! runs, and inside of what it gave to `spawn_io`, as long as the job or another
//! one of its family holds the permit. Code on the lane's threads that is part of
//! no known job (a stolen child of rayon's, a destructor) goes in without one; or, where
//! its worker waits inside another job, by that job's.

use std::cell::RefCell;
use std::mem;
use std::ptr;
use std::sync::{Arc, Weak};

use tokio::sync::OwnedSemaphorePermit;

use crate::context;
use crate::lane::Lane;

/// Given back when the last of its holders lets go: the job that was admitted by
/// it, and what that job has submitted.
pub(crate) type Permit = Arc<OwnedSemaphorePermit>;

#[derive(Clone, Default)]
pub(crate) enum Covered {
    /// A submission needs a permit of its own.
    #[default]
    No,
    /// A job of the lane submits that holds none itself, or an unknown one.
    Free(Weak<Lane>),
    By(Permit),
    /// On the I/O lane: a job's future may go on for long after the job.
    AsLongAsHeld(Weak<OwnedSemaphorePermit>),
}

thread_local! {
    static COVERED: RefCell<Covered> = const { RefCell::new(Covered::No) };
}

/// Until the answer is dropped, that covers what this thread submits.
pub(crate) fn enter(covered: Covered) -> impl Drop {
    struct Before(Covered);
    impl Drop for Before {
        fn drop(&mut self) {
            let before = mem::take(&mut self.0);
            drop(COVERED.try_with(|covered| covered.replace(before)));
        }
    }
    // `try_with`: a future may be dropped while its thread ends.
    let before = COVERED.try_with(|before| before.replace(covered));
    Before(before.unwrap_or_default())
}

/// What covers a submission to `lane` by this thread.
pub(crate) fn covered(lane: &Arc<Lane>) -> Covered {
    if !lane.has_limits() {
        return Covered::No;
    }
    let here = COVERED.try_with(|covered| covered.borrow().clone());
    let here = match here.unwrap_or_default() {
        Covered::AsLongAsHeld(permit) => permit.upgrade().map_or(Covered::No, Covered::By),
        other => other,
    };
    match here {
        Covered::By(permit) if lane.has_issued(&permit) => Covered::By(permit),
        Covered::Free(of) if ptr::eq(of.as_ptr(), &raw const **lane) => Covered::Free(of),
        _ if context::is_thread_of_lane(lane) => Covered::Free(Arc::downgrade(lane)),
        _ => Covered::No,
    }
}

impl Covered {
    /// What of it goes with a future to the I/O lane.
    pub(crate) fn for_io(self) -> Self {
        match self {
            Self::By(permit) => Self::AsLongAsHeld(Arc::downgrade(&permit)),
            other => other,
        }
    }
}
