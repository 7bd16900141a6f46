//! Which permit covers the jobs that a thread submits.
//!
//! A job that waits for another job must not wait for a permit that it holds itself. So
//! the jobs that a job submits use the permit of that job. This holds on the job's
//! thread while the job runs. It also holds inside a future that the job gave to
//! `spawn_io`, as long as this job, or another one that shares the permit, still holds
//! it.
//!
//! Some code on the lane's threads is part of no known job: a rayon child that another
//! worker took, a destructor. It submits without a permit. If its worker runs it while
//! it waits inside another job, it uses the permit of that job.

use std::mem;
use std::ptr;
use std::sync::Arc;

use super::Lane;
use super::thread::{self, Inherited};
use crate::guard::on_drop;

/// Until the guard is dropped, `inherited` covers what this thread submits.
pub(crate) fn enter(inherited: Inherited) -> impl Drop {
    let mut before = thread::set_inherited(inherited);
    on_drop(move || drop(thread::set_inherited(mem::take(&mut before))))
}

/// Returns what covers a submission to `lane` by this thread.
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
    /// Returns what a future takes along to the I/O lane.
    pub(crate) fn for_io(self) -> Self {
        match self {
            Self::By(permit) => Self::AsLongAsHeld(Arc::downgrade(&permit)),
            other => other,
        }
    }
}
