//! The ways into the queue.
//!
//! A submission is accepted at once or refused. A queue with a limit
//! ([`Builder::queue_limit`](crate::Builder::queue_limit)) has one more way: to take a
//! permit first, or to wait for one. The permits are those of a Tokio semaphore.

mod permit;

use std::mem;
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};

use crate::error::CloseReason;
use crate::lane::{Level, thread};
use crate::panics;
use crate::task::{Event, Extras, Job, Schedule, Submit, Task, Work, closure, has_passed};
pub use permit::{Permit, Reserve};

/// Submits at once, with that deadline. If it is refused, its task returns the reason.
impl Submit for (&Level, Option<Instant>) {
    #[track_caller]
    fn submit<W: Work>(self, work: W) -> Task<W::Output> {
        let (level, deadline) = self;
        let late = || has_passed(deadline).then_some(CloseReason::Expired);
        let in_time = |permit| late().map_or(Ok(permit), Err);
        match acquire(level).and_then(in_time) {
            Ok(permit) => take_on(level, permit, deadline, work),
            Err(cause) => refuse(level, cause, work),
        }
    }
}

fn refuse<W: Work>(level: &Level, cause: CloseReason, work: W) -> Task<W::Output> {
    level.count(Event::Rejected);
    // On this thread: a panic of the destructor reaches the caller, as with any value
    // that the caller drops.
    drop(work);
    Task::refused(cause)
}

type Acquired = Result<Option<OwnedSemaphorePermit>, CloseReason>;

/// Returns the permit for a submission by this thread, if it needs one.
#[inline]
fn acquire(level: &Level) -> Acquired {
    if let Some(cause) = level.lane.close_reason() {
        return Err(cause);
    }
    let is_exempt = || level.is_unlimited || thread::is_exempt(&level.lane);
    let Some(limit) = level.limit().filter(|_| !is_exempt()) else {
        return Ok(None);
    };
    match limit.clone().try_acquire_owned() {
        Ok(permit) => Ok(Some(permit)),
        Err(TryAcquireError::NoPermits) => Err(CloseReason::QueueFull),
        Err(TryAcquireError::Closed) => Err(level.lane.reason_of_close()),
    }
}

#[track_caller]
fn take_on<W: Work>(
    level: &Level,
    permit: Option<OwnedSemaphorePermit>,
    deadline: Option<Instant>,
    work: W,
) -> Task<W::Output> {
    let mut extras = Extras::new(permit, deadline);
    if cfg!(feature = "test-util") && level.lane.settings.holds_paused_clock {
        extras.hold_clock_of(&level.lane.io.handle);
    }
    let job = Job::new(level.at_caller(), work, extras);
    job.submit();
    Task::new(job)
}

/// Drops, on the lane, a value that any thread may be the last to hold.
///
/// Never refuses: what a closed lane is given, its reaper drops. After the lane's end it is the
/// calling thread.
#[track_caller]
pub(crate) fn drop_on_lane<T: Send + 'static>(level: &Level, value: T) {
    if !mem::needs_drop::<T>() || level.is_own_worker() {
        return panics::drop_quietly("a destructor on the CPU lane", value);
    }
    // The box hides the value's type: all such values share the code of their job.
    let value: Box<dyn Send> = Box::new(value);
    take_on(level, None, None, closure(move || drop(value))).detach_quietly();
}
