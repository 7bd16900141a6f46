//! The ways into the queue.
//!
//! A submission is accepted at once or refused. A queue with a limit
//! ([`Builder::queue_limit`](crate::Builder::queue_limit)) has one more way: to take a
//! permit first, or to wait for one. The permits are those of a Tokio semaphore.

mod permit;

use std::mem;

use stallwatch::Name;

use crate::error::{CloseReason, JoinError};
use crate::lane::{Level, Submitter, thread};
use crate::limits::{Charge, Expected};
use crate::panics;
use crate::task::{Event, Extras, Job, Submit, Task, Work, closure, has_passed, thread_number};
pub use permit::{Permit, Reserve};

/// Submits at once.
impl Submit for &Submitter {
    #[track_caller]
    fn submit<W: Work>(self, work: W) -> Task<W::Output> {
        enter(self, work, Extras::default(), |extras, entry| {
            *extras = admit(self, Some(entry))?;
            Ok(in_time(self)?)
        })
    }
}

/// What is known of a job at the door: whether it goes before others is asked here, once.
#[derive(Clone, Copy)]
struct Entry {
    site: Name,
    is_short: bool,
}

impl Entry {
    #[inline]
    fn new(submitter: &Submitter, site: Name) -> Self {
        let has_key = submitter.key.is_some();
        let is_short = submitter.level().is_short(site, has_key);
        Self { site, is_short }
    }

    /// What a limit in time expects of it.
    fn expected(self, level: &Level) -> Expected {
        Some((self.is_short, level.counters.sites.held(self.site)))
    }
}

type Admitted = Result<Extras, JoinError>;

/// The way of a job into the queue. If it is refused, its task returns the reason.
#[track_caller]
fn enter<W: Work>(
    submitter: &Submitter,
    work: W,
    mut extras: Extras,
    admit: impl FnOnce(&mut Extras, Entry) -> Result<(), JoinError>,
) -> Task<W::Output> {
    let entry = Entry::new(submitter, submitter.site_or_caller());
    if let Err(reason) = admit(&mut extras, entry) {
        submitter.count(Event::Rejected);
        // On this thread: a panic of the destructor reaches the caller, as with any value
        // that the caller drops. And before `extras`: a place is free when the captures are gone.
        drop(work);
        return Task::refused(reason);
    }
    complete(&mut extras, submitter);
    let this_thread = thread_number();
    let scheduler = submitter.scheduler(this_thread, entry.site);
    let job = Job::new(scheduler, work, extras);
    job.submit(this_thread, entry.is_short);
    Task::new(job)
}

#[inline]
fn complete(extras: &mut Extras, submitter: &Submitter) {
    extras.complete(submitter.deadline);
    let lane = &submitter.levels.lane;
    if cfg!(feature = "test-util") && lane.settings.holds_paused_clock {
        extras.hold_clock_of(lane.io.handle.clone());
    }
}

/// May it come in? Not if the lane is closed, as it is without its I/O runtime, and not beyond the
/// limits of its priority and its key, unless it is exempt. `entry`: `None` for a caller that would
/// wait.
#[inline]
fn admit(submitter: &Submitter, entry: Option<Entry>) -> Admitted {
    submitter.check_open()?;
    let (level, key) = (submitter.level(), submitter.key.as_ref());
    if !level.limits.is_set && key.is_none() {
        return Ok(Extras::default());
    }
    if submitter.is_exempt() {
        return Ok(Charge::exempt(&level.limits, key).into());
    }
    let expected = entry.and_then(|entry| entry.expected(level));
    let admitted = level.limits.admit(key, expected);
    if admitted.is_err() {
        // It may have been closed meanwhile.
        submitter.check_open()?;
    }
    Ok(Some(admitted?).into())
}

/// May it still, by a permit, now that its job is there?
fn admit_by_permit(submitter: &Submitter, extras: &Extras, entry: Entry) -> Result<(), JoinError> {
    submitter.check_open()?;
    in_time(submitter)?;
    if let Some(charge) = extras.charge().filter(|_| !submitter.is_exempt()) {
        charge.admit_in_time(entry.expected(submitter.level()))?;
    }
    Ok(())
}

#[inline]
fn in_time(submitter: &Submitter) -> Result<(), CloseReason> {
    match has_passed(submitter.deadline) {
        true => Err(CloseReason::Expired),
        false => Ok(()),
    }
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
    let charge = Charge::exempt(&submitter.level().limits, submitter.key.as_ref());
    let work = closure(move || drop(value));
    enter(&submitter, work, charge.into(), |_, _| Ok(())).detach_quietly();
}
