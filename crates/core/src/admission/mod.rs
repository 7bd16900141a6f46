//! The ways into the queue.
//!
//! A submission is accepted at once or refused. A queue with a limit
//! ([`Builder::queue_limit`](crate::Builder::queue_limit)) has one more way: to take a
//! permit first, or to wait for one. The permits are those of a Tokio semaphore.

mod permit;

use std::mem;

use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};

use crate::error::CloseReason;
use crate::lane::{Submitter, thread};
use crate::panics;
use crate::task::{Event, Extras, Job, Submit, Task, Work, closure, has_passed, thread_number};
pub use permit::{Permit, Reserve};

/// Submits at once. If it is refused, its task returns the reason.
impl Submit for &Submitter {
    #[track_caller]
    fn submit<W: Work>(self, work: W) -> Task<W::Output> {
        match admit(self).and_then(|permit| late(self).map_or(Ok(permit), Err)) {
            Ok(permit) => take_on(self, permit, work),
            Err(cause) => refuse(self, cause, work),
        }
    }
}

fn refuse<W: Work>(submitter: &Submitter, cause: CloseReason, work: W) -> Task<W::Output> {
    submitter.count(Event::Rejected);
    // On this thread: a panic of the destructor reaches the caller, as with any value
    // that the caller drops.
    drop(work);
    Task::refused(cause)
}

type Admitted = Result<Option<OwnedSemaphorePermit>, CloseReason>;

/// May it come in? Not if the lane is closed, as it is without its I/O runtime, and not without a
/// permit, if this submission needs one.
#[inline]
fn admit(submitter: &Submitter) -> Admitted {
    if let Some(cause) = submitter.close_reason() {
        return Err(cause);
    }
    let limit = submitter.level().limit();
    let Some(limit) = limit.filter(|_| !submitter.is_exempt()) else {
        return Ok(None);
    };
    match limit.clone().try_acquire_owned() {
        Ok(permit) => Ok(Some(permit)),
        Err(TryAcquireError::NoPermits) => Err(CloseReason::QueueFull),
        Err(TryAcquireError::Closed) => Err(submitter.levels.lane.reason_once_closed()),
    }
}

#[inline]
fn late(submitter: &Submitter) -> Option<CloseReason> {
    has_passed(submitter.deadline).then_some(CloseReason::Expired)
}

#[track_caller]
fn take_on<W: Work>(
    submitter: &Submitter,
    permit: Option<OwnedSemaphorePermit>,
    work: W,
) -> Task<W::Output> {
    let mut extras = Extras::new(permit, submitter.deadline);
    let lane = &submitter.levels.lane;
    if cfg!(feature = "test-util") && lane.settings.holds_paused_clock {
        extras.hold_clock_of(&lane.io.handle);
    }
    let this_thread = thread_number();
    let job = Job::new(submitter.scheduler(this_thread), work, extras);
    job.submit(this_thread);
    Task::new(job)
}

/// Drops, on the lane, a value that any thread may be the last to hold.
///
/// Never refuses: what a closed lane is given, its reaper drops. After the lane's end it is the
/// calling thread.
#[track_caller]
pub(crate) fn drop_on_lane<T: Send + 'static>(submitter: &Submitter, value: T) {
    if !mem::needs_drop::<T>() || thread::is_worker_of(&submitter.levels.lane) {
        return panics::drop_quietly("a destructor on the CPU lane", value);
    }
    // The box hides the value's type: all such values share the code of their job.
    let value: Box<dyn Send> = Box::new(value);
    let submitter = submitter.without_deadline();
    take_on(&submitter, None, closure(move || drop(value))).detach_quietly();
}
