//! [`Schedule`]: what a job needs from its lane. `lane/level.rs` implements it.
//!
//! A job knows its lane by this trait only. So `task` imports nothing of `lane`.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use super::{QueuePermit, Run};
use crate::error::CloseReason;
use crate::metrics::call_sites::{Sample, Stamp};
#[cfg(feature = "metrics")]
use crate::metrics::timings::Timings;
use stallwatch::Entered;

/// A lane at one of its priorities, as its jobs see it.
pub(crate) trait Schedule: Clone + Send + Sync + 'static {
    /// Whether the lane is shut down.
    fn is_closed(&self) -> bool;
    /// Pushes the job to the queue. It is new or was woken, or it was closed while it was
    /// suspended and must be discarded on the lane.
    fn enqueue(&self, job: Arc<dyn Run>);

    /// Registers a job that may be in none of the lane's queues, so that a shutdown
    /// finds it. The job stays registered until it has ended.
    fn register(&self, job: Arc<dyn Run>) -> RegistryKey;
    fn unregister(&self, key: RegistryKey);

    /// Call before a step: waits while the process is about to use up its CPU quota.
    fn throttle(&self, is_over: impl Fn() -> bool);
    /// While the returned guard lives, the jobs that this thread submits share
    /// `permit`.
    fn inherit_permit(&self, permit: QueuePermit) -> impl Drop;
    /// While the returned guard lives, the watch sees this thread in a step of the job.
    fn enter_step(&self, is_closure: bool, deadline: Option<Instant>) -> Option<Entered>;
    /// Whether this thread is one of the lane's workers.
    fn is_own_worker(&self) -> bool;

    fn count(&self, event: Event);
    /// Like `count`; only for a thread of the level, in a step of a job.
    fn count_in_step(&self, event: Event);
    /// Counts a job that is about to be queued for the first time. Returns whether its
    /// first step is a sample of its call site.
    fn submitted(&self) -> Stamp;
    /// Returns whether the next step is a sample, for a job that is about to be queued
    /// again.
    fn woken(&self) -> Stamp;
    /// Begins a step of a job with that stamp, if it is a sample.
    fn begin_sample(&self, queued: Stamp) -> Option<Sample>;
    fn end_sample(&self, sample: &Sample);
    /// Counts a detached job that was closed. It has no awaiter, so the log reports it.
    fn count_lost(&self);
    /// `None` if they are not recorded.
    #[cfg(feature = "metrics")]
    fn timings(&self) -> Option<&Timings>;
}

/// The index of a job in the registry, plus one, so that an `Option` of it is no
/// larger.
pub(crate) type RegistryKey = NonZeroUsize;

/// The events that a level counts.
#[derive(Clone, Copy)]
pub(crate) enum Event {
    Submitted,
    Rejected,
    /// A step began.
    Begun,
    /// A step ended without an output, and the job is about to be suspended.
    Suspended,
    /// A job that was suspended, or about to be, is going to be queued.
    Woken,
    Completed,
    Panicked,
    Cancelled,
    Expired,
    /// The lane itself closed the job.
    Dropped,
    /// Counted in addition to `Cancelled`, `Expired` or `Dropped`: where the job was.
    ClosedQueued,
    ClosedSuspended,
}

impl Event {
    pub(crate) fn of_close(cause: CloseReason) -> Self {
        match cause {
            CloseReason::Cancelled => Self::Cancelled,
            CloseReason::Expired => Self::Expired,
            _ => Self::Dropped,
        }
    }
}
