//! [`Schedule`]: what a job calls its lane back for. `lane/level.rs` implements it.
//!
//! A job knows its lane by this trait only, and by the [`Worker`](super::Worker) that runs it.
//! So `task` imports nothing of `lane`.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use super::{Event, Run};
use crate::metrics::call_sites::Length;
use crate::metrics::timings::Timings;
use stallwatch::{Entered, Name};

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

    /// While the returned guard lives, the watch sees this thread in a step of the job.
    fn enter_step(&self, is_closure: bool, deadline: Option<Instant>) -> Option<Entered>;
    /// Whether this thread is one of the lane's workers.
    fn is_own_worker(&self) -> bool;
    /// The lane's I/O runtime. A model has none.
    fn io(&self) -> Option<&tokio::runtime::Handle> {
        None
    }

    fn count(&self, event: Event);
    /// Counts a job that is about to be queued for the first time.
    fn submitted(&self);
    /// The call site of the job.
    fn site(&self) -> Name;
    /// How long its next step takes, as far as the lane knows.
    fn length(&self) -> Length;
    /// Counts a detached job that was closed. It has no awaiter, so the log reports it.
    fn count_lost(&self);
    /// `None` if they are not recorded.
    fn timings(&self) -> Option<&Timings>;
}

/// The index of a job in the registry, plus one, so that an `Option` of it is no
/// larger.
pub(crate) type RegistryKey = NonZeroUsize;
