//! Ways into the queue: at once or not at all, and, where it has a limit
//! ([`Builder::queue_limit`](crate::Builder::queue_limit)), by waiting for a permit
//! or by getting the closure back. The permits are those of a Tokio semaphore.

mod admit;
mod permit;
mod rejected;

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::TryAcquireError;

use crate::error::CloseReason;
use crate::lane::Level;
use crate::lane::inherit::{self, Inherited};
use crate::task::{self, Event, Extras, Job, Schedule, Task, Work};
pub use admit::Admit;
pub use permit::Permit;
pub use rejected::Rejected;

/// At once, or not at all.
pub(crate) fn submit<W: Work>(level: &Level, work: W) -> Task<W::Output> {
    match enter(level) {
        Ok(permit) => take_on(level, permit, None, work),
        Err(cause) => refuse(level, cause, work),
    }
}

/// The same, and hands the work back if it is not taken on.
pub(crate) fn try_submit<F, W: Work>(
    level: &Level,
    work: F,
    into_work: impl FnOnce(F) -> W,
) -> Result<Task<W::Output>, Rejected<F>> {
    match enter(level) {
        Ok(permit) => Ok(take_on(level, permit, None, into_work(work))),
        Err(cause) => {
            level.count(Event::Rejected);
            Err(Rejected::new(work, cause.into()))
        }
    }
}

fn refuse<W: Work>(level: &Level, cause: CloseReason, work: W) -> Task<W::Output> {
    level.count(Event::Rejected);
    // On this thread, where a destructor that panics is the caller's as with any
    // value that it drops.
    drop(work);
    Task::refused(cause)
}

/// The permit that covers this thread's submissions, if one does; else one of the
/// level's own, if it has a limit.
fn enter(level: &Level) -> Result<Option<task::QueuePermit>, CloseReason> {
    if let Some(cause) = level.lane().close_reason() {
        return Err(cause);
    }
    // Before the limit: by way of a priority that has none, a job may submit to
    // its own again.
    match (inherit::inherited(level.lane()), level.limit()) {
        (Inherited::By(permit), _) => Ok(Some(permit)),
        (Inherited::No, Some(limit)) => match limit.clone().try_acquire_owned() {
            Ok(permit) => Ok(Some(Arc::new(permit))),
            Err(TryAcquireError::NoPermits) => Err(CloseReason::QueueFull),
            Err(TryAcquireError::Closed) => Err(CloseReason::ShutDown),
        },
        _ => Ok(None),
    }
}

fn take_on<W: Work>(
    level: &Level,
    permit: Option<task::QueuePermit>,
    deadline: Option<Instant>,
    work: W,
) -> Task<W::Output> {
    #[cfg_attr(not(feature = "test-util"), allow(unused_mut))]
    let mut extras = Extras::new(permit, deadline);
    #[cfg(feature = "test-util")]
    if W::IS_CLOSURE && level.lane().settings.holds_paused_clock {
        extras.hold_clock(level.lane().io.handle());
    }
    let job = Job::new(level.clone(), work, extras);
    job.submitted();
    let tokio = level.submit(job.clone());
    Task::new(job, tokio)
}
