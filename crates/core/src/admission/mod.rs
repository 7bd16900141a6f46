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

/// Submits at once. If it is refused, its task returns the reason.
impl Submit for &Submitter {
    #[track_caller]
    fn submit<W: Work>(self, work: W) -> Task<W::Output> {
        let entry = Entry::new(self, self.site_or_caller());
        match (admit(self, Some(entry)), late(self)) {
            (Ok(extras), None) => take_on(self, extras, work, entry),
            (Ok(_), Some(late)) => refuse(self, late.into(), work),
            (Err(reason), _) => refuse(self, reason, work),
        }
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

fn refuse<W: Work>(submitter: &Submitter, reason: JoinError, work: W) -> Task<W::Output> {
    submitter.count(Event::Rejected);
    // On this thread: a panic of the destructor reaches the caller, as with any value
    // that the caller drops.
    drop(work);
    Task::refused(reason)
}

type Admitted = Result<Extras, JoinError>;

/// May it come in? Not if the lane is closed, as it is without its I/O runtime, and not beyond the
/// limits of its priority and its key, unless it is exempt. `entry`: `None` for a caller that would
/// wait.
#[inline]
fn admit(submitter: &Submitter, entry: Option<Entry>) -> Admitted {
    let closed = || submitter.close_reason().map(JoinError::from);
    if let Some(closed) = closed() {
        return Err(closed);
    }
    let (level, key) = (submitter.level(), submitter.key.as_ref());
    if !level.limits.is_set && key.is_none() {
        return Ok(Extras::default());
    }
    if submitter.is_exempt() {
        return Ok(Charge::exempt(&level.limits, key).into());
    }
    let expected = entry.and_then(|entry| entry.expected(level));
    let admitted = level.limits.admit(key, expected);
    // It may have been closed meanwhile.
    let admitted = admitted.map_err(|full| closed().unwrap_or(full));
    admitted.map(|charge| Some(charge).into())
}

/// Of a permit, whose job is there now.
fn refusal(submitter: &Submitter, extras: &Extras, entry: Entry) -> Option<JoinError> {
    let cause = submitter.close_reason().or_else(|| late(submitter));
    let full = || {
        let charge = extras.charge().filter(|_| !submitter.is_exempt())?;
        let expected = entry.expected(submitter.level());
        charge.admit_in_time(expected).err()
    };
    cause.map(JoinError::from).or_else(full)
}

#[inline]
fn late(submitter: &Submitter) -> Option<CloseReason> {
    has_passed(submitter.deadline).then_some(CloseReason::Expired)
}

fn take_on<W: Work>(
    submitter: &Submitter,
    mut extras: Extras,
    work: W,
    entry: Entry,
) -> Task<W::Output> {
    extras.complete(submitter.deadline);
    let lane = &submitter.levels.lane;
    if cfg!(feature = "test-util") && lane.settings.holds_paused_clock {
        extras.hold_clock_of(&lane.io.handle);
    }
    let this_thread = thread_number();
    let scheduler = submitter.scheduler(this_thread, entry.site);
    let job = Job::new(scheduler, work, extras);
    job.submit(this_thread, entry.is_short);
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
    let charge = Charge::exempt(&submitter.level().limits, submitter.key.as_ref());
    let entry = Entry::new(&submitter, submitter.site_or_caller());
    take_on(
        &submitter,
        charge.into(),
        closure(move || drop(value)),
        entry,
    )
    .detach_quietly();
}
