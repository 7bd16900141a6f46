//! [`Schedule`]: what a job asks of the lane that it belongs to.
//!
//! A job knows its lane by this trait alone, and the lane knows its jobs by
//! [`Run`]: so the two layers do not import each other.

use std::num::NonZeroUsize;
use std::sync::Arc;

use super::{QueuePermit, Run};
#[cfg(feature = "metrics")]
use crate::metrics::timings::Timings;

pub(crate) trait Schedule: Clone + Send + Sync + 'static {
    /// Whether the lane is shut down.
    fn is_closed(&self) -> bool;
    /// Puts the job into the queue: it was woken, or was closed while it rested and
    /// is to be discarded.
    fn enqueue(&self, job: Arc<dyn Run>);

    /// Enters a job that rests in no queue of the lane's, so that a shutdown finds it.
    fn register(&self, job: Arc<dyn Run>) -> RegistryKey;
    fn unregister(&self, key: RegistryKey);
    /// Whether a job is registered while its task waits for it. (Otherwise: while it
    /// is suspended.)
    fn registers_awaited(&self) -> bool;

    /// Before a step: waits while the process is about to use up its CPU quota.
    fn throttle(&self, is_over: impl Fn() -> bool);
    /// Until the answer is dropped, `permit` covers what this thread submits.
    fn lend(&self, permit: QueuePermit) -> impl Drop;
    /// Whether this thread is one of the lane's workers.
    fn is_own_worker(&self) -> bool;

    fn count(&self, event: Event);
    /// Only for a thread of the level, in a step of a job.
    fn count_in_step(&self, event: Event);
    /// A detached job was closed: its submitter is not told, so the log is.
    fn count_lost(&self);
    #[cfg(feature = "metrics")]
    fn timings(&self) -> &Timings;
}

/// Where a job is in the registry, plus one: so an `Option` of it is no larger.
pub(crate) type RegistryKey = NonZeroUsize;

/// What is counted of the jobs of a level.
#[derive(Clone, Copy)]
pub(crate) enum Event {
    Submitted,
    Rejected,
    /// A step began.
    Begun,
    /// A step ended without an output, and the job is about to rest.
    Suspended,
    /// A job that rested, or was about to, is to be queued.
    Woken,
    Completed,
    Panicked,
    Cancelled,
    Expired,
    /// Closed by the lane itself.
    Dropped,
    /// The last three again, by where the job was.
    ClosedQueued,
    ClosedSuspended,
}
