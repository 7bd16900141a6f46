//! The ways into the queue.
//!
//! A submission is accepted at once or refused. A queue with a limit
//! ([`Builder::queue_limit`](crate::Builder::queue_limit)) has one more way: to take a
//! permit first, or to wait for one. The permits are those of a Tokio semaphore.

mod permit;

use std::mem;

use stallwatch::Name;

use crate::error::{CloseReason, JoinError};
use crate::lane::{Submitter, thread};
use crate::limits::Charge;
use crate::panics;
use crate::task::{Event, Extras, Job, Submit, Task, Work, closure, has_passed, thread_number};
pub use permit::{Permit, Reserve};

/// Submits at once. If it is refused, its task returns the reason.
impl Submit for &Submitter {
    #[track_caller]
    fn submit<W: Work>(self, work: W) -> Task<W::Output> {
        let site = self.site_or_caller();
        match (admit(self, Some(site)), late(self)) {
            (Ok(charge), None) => take_on(self, charge, work, site),
            (Ok(_), Some(late)) => refuse(self, late.into(), work),
            (Err(reason), _) => refuse(self, reason, work),
        }
    }
}

fn refuse<W: Work>(submitter: &Submitter, reason: JoinError, work: W) -> Task<W::Output> {
    submitter.count(Event::Rejected);
    // On this thread: a panic of the destructor reaches the caller, as with any value
    // that the caller drops.
    drop(work);
    Task::refused(reason)
}

type Admitted = Result<Option<Box<Charge>>, JoinError>;

/// May it come in? Not if the lane is closed, as it is without its I/O runtime, and not beyond the
/// limits of its priority, unless it is exempt. `site`: of the job, [`Name::OTHER`] for a permit
/// whose job is not known, or `None` for a caller that would wait.
#[inline]
fn admit(submitter: &Submitter, site: Option<Name>) -> Admitted {
    let closed = || submitter.close_reason().map(JoinError::from);
    if let Some(closed) = closed() {
        return Err(closed);
    }
    let level = submitter.level();
    let Some(limits) = &level.limits else {
        return Ok(None);
    };
    if submitter.is_exempt() {
        return Ok(Charge::exempt(limits));
    }
    let admitted = limits.admit(site.map(|site| level.is_short(site)));
    // It may have been closed meanwhile.
    admitted.map(Some).map_err(|full| closed().unwrap_or(full))
}

/// Of a permit, whose job is there now.
fn refusal(submitter: &Submitter, charge: Option<&Charge>, site: Name) -> Option<JoinError> {
    let cause = submitter.close_reason().or_else(|| late(submitter));
    let full = || {
        let charge = charge.filter(|_| !submitter.is_exempt())?;
        charge.admit(submitter.level().is_short(site)).err()
    };
    cause.map(JoinError::from).or_else(full)
}

#[inline]
fn late(submitter: &Submitter) -> Option<CloseReason> {
    has_passed(submitter.deadline).then_some(CloseReason::Expired)
}

fn take_on<W: Work>(
    submitter: &Submitter,
    charge: Option<Box<Charge>>,
    work: W,
    site: Name,
) -> Task<W::Output> {
    let mut extras = Extras::new(charge, submitter.deadline);
    let lane = &submitter.levels.lane;
    if cfg!(feature = "test-util") && lane.settings.holds_paused_clock {
        extras.hold_clock_of(&lane.io.handle);
    }
    let this_thread = thread_number();
    let job = Job::new(submitter.scheduler(this_thread, site), work, extras);
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
    let submitter = submitter.clone().without_deadline();
    let charge = submitter.level().limits.as_ref().and_then(Charge::exempt);
    let site = submitter.site_or_caller();
    take_on(&submitter, charge, closure(move || drop(value)), site).detach_quietly();
}
