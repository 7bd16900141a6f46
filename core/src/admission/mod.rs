//! The ways into the queue.
//!
//! A submission is accepted at once or refused. A queue with a limit
//! ([`Builder::queue_limit`](crate::Builder::queue_limit)) has one more way: to take a
//! permit first, or to wait for one. The permits are those of a Tokio semaphore.

mod drop_on_lane;
mod permit;
mod reserve;

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::error::CloseReason;
use crate::lane::{Level, thread};
use crate::task::{Event, Extras, Job, Schedule, Task, Work, has_passed};
pub(crate) use drop_on_lane::drop_on_lane;
pub use permit::Permit;
pub use reserve::Reserve;

/// Submits the work at once. If it is refused, its task returns the reason.
#[track_caller]
pub(crate) fn submit<W: Work>(
    level: &Level,
    deadline: Option<Instant>,
    work: W,
) -> Task<W::Output> {
    match acquire_in_time(level, deadline) {
        Ok(permit) => take_on(level, permit, deadline, work),
        Err(cause) => refuse(level, cause, work),
    }
}

/// Why a job with a permit is refused now, if it is.
fn refused_now(level: &Level, deadline: Option<Instant>) -> Option<CloseReason> {
    let late = || has_passed(deadline).then_some(CloseReason::Expired);
    level.lane().close_reason().or_else(late)
}

fn refuse<W: Work>(level: &Level, cause: CloseReason, work: W) -> Task<W::Output> {
    level.count(Event::Rejected);
    // On this thread: a panic of the destructor reaches the caller, as with any value
    // that the caller drops.
    drop(work);
    Task::refused(cause)
}

/// The permit of a submission with that deadline. Most have none, and pay a branch.
#[inline]
fn acquire_in_time(
    level: &Level,
    deadline: Option<Instant>,
) -> Result<Option<OwnedSemaphorePermit>, CloseReason> {
    let acquired = acquire(level);
    match deadline {
        None => acquired,
        Some(_) => acquired.and_then(|permit| match has_passed(deadline) {
            true => Err(CloseReason::Expired),
            false => Ok(permit),
        }),
    }
}

/// Returns the permit for a submission by this thread, if it needs one.
#[inline]
fn acquire(level: &Level) -> Result<Option<OwnedSemaphorePermit>, CloseReason> {
    if let Some(cause) = level.lane().close_reason() {
        return Err(cause);
    }
    match level.limit() {
        None => Ok(None),
        Some(limit) => acquire_of(limit, level),
    }
}

fn acquire_of(
    limit: &Arc<Semaphore>,
    level: &Level,
) -> Result<Option<OwnedSemaphorePermit>, CloseReason> {
    if level.is_unlimited() || thread::is_exempt(level.lane()) {
        return Ok(None);
    }
    match limit.clone().try_acquire_owned() {
        Ok(permit) => Ok(Some(permit)),
        Err(TryAcquireError::NoPermits) => Err(CloseReason::QueueFull),
        Err(TryAcquireError::Closed) => Err(level.lane().reason_of_close()),
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
    if cfg!(feature = "test-util") && level.lane().settings.holds_paused_clock {
        extras.hold_clock_of(level.lane().io.handle());
    }
    let job = Job::new(level.at_caller(), work, extras);
    job.submitted();
    level.enqueue(job.clone());
    Task::new(job)
}
