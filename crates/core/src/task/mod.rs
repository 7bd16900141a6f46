//! One job of the CPU lane: a closure or a future, from its submission to its output.
//!
//! A closure of up to 2 KiB needs one allocation: work, state, output and the awaiter's waker live
//! behind one `Arc`, and the output takes the memory of the work. A future is boxed in
//! addition, because pinning it inside the `Arc` would take `unsafe`. The lane's queue,
//! the [`Task`], the wakers and the registry of suspended jobs all hold the same `Arc`.
//! [`state`] defines which of them may do what.
//!
//! **A cancel** (`Task::abort`, its drop, or an `AbortHandle`, all by
//! [`Cancel::cancel`]) never blocks, and does what the job's phase allows:
//!
//! - *Queued, and never run*: the job is closed and its awaiter notified. The worker that
//!   pops it drops the captures.
//! - *Running*: a flag in its state. A future's runner finds it after the step, drops the
//!   future, and then notifies the awaiter. A closure of `spawn_cpu_with` sees it by
//!   `JobContext::checkpoint`; one of `spawn_cpu` runs to its end.
//! - *Suspended, or queued by a wake*: the same flag. The canceller queues a suspended job, so that
//!   a thread of the lane finds it.
//!
//! A `spawn_io` is no such job, but a Tokio task of the I/O lane, which a cancel aborts
//! ([`IoJoin`]): its awaiter is notified when that lane has dropped the future.
//!
//! A job knows its lane by [`Schedule`] only, which `lane/scheduler.rs` implements, and by the
//! [`Worker`] that runs it. So this module imports nothing of `lane`.
//!
//! [`Task`]: crate::Task

mod block_on;
pub(crate) mod budget;
mod clock;
mod clock_hold;
mod context;
mod counters;
mod head;
mod io;
mod job;
mod join;
pub(crate) mod state;
mod step;
pub(crate) mod ticker;
mod work;
pub(crate) mod worker;
pub(crate) mod yields;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicU32 as ClockWord;
use std::task::{Context, Poll};
use std::time::Instant;

use stallwatch::{Entered, Name};

use crate::error::{CloseReason, JoinError};
use crate::key::Key;
use crate::pace::Popped;
pub(crate) use block_on::{assert_may_block, block_on};
pub use context::{AbortHandle, Cancelled, JobContext};
pub(crate) use counters::{Counters, Event, thread_number};
pub(crate) use io::{IoJoin, IoOutcome};
pub(crate) use job::Job;
pub use join::Task;
pub(crate) use work::{Extras, FutureWork, Submit, Work, closure, has_passed, is_large};
pub(crate) use worker::Worker;

/// Names, in the log, the values that a job drops at its end.
pub(crate) const JOB_DESTRUCTOR: &str = "what a job left behind";

/// The operations of every holder of a job, whatever its type.
///
/// Here and in [`Runnable`], a default is what holds for a job of the lane itself (`lane/help.rs`).
pub(crate) trait Cancel: Send + Sync {
    /// Requests the end of the job; returns at once.
    /// Returns the site of a closure that has not begun, and now never does.
    fn cancel(self: Arc<Self>) -> Option<Name> {
        None
    }
    fn has_ended(&self) -> bool {
        false
    }
}

/// The operations of the [`Task`] of a job.
pub(crate) trait Join<T>: Cancel {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>>;
    /// The task was dropped, or `detached`: no awaiter will take the output. If it was detached,
    /// the job logs its loss.
    fn drop_join_handle(&self, detached: bool);
    /// Whether the current thread is a worker of the lane on which the job runs.
    fn is_own_worker(&self) -> bool;
    /// The runtime whose clock the job holds, if it does: that may be paused.
    fn held_clock(&self) -> Option<&tokio::runtime::Handle>;
    // The MSRV has no trait upcasting.
    fn as_cancel(self: Arc<Self>) -> Arc<dyn Cancel>;
}

/// What the caller has to do after a step.
pub(crate) enum StepEnd {
    /// Nothing: the job has ended, or was closed.
    Ended,
    /// Nothing until a wake: the job is suspended.
    Suspended,
    /// Queue the job again: it was woken during its own step.
    Requeue {
        job: Arc<dyn Runnable>,
        /// The job yielded to the other jobs of the lane.
        yielded: bool,
    },
}

/// The operations of the lane and its workers on a job.
pub(crate) trait Runnable: Cancel {
    /// Runs one step, or drops the work of a job that was closed before.
    #[must_use]
    fn run(self: Arc<Self>, worker: &mut Worker<'_>) -> StepEnd;
    /// As [`Schedule::is_short`].
    fn is_short(&self) -> bool {
        false
    }
    fn key(&self) -> Option<&Key> {
        None
    }
    /// Closes the job and notifies its awaiter at once; does nothing if the job runs or
    /// has ended. The caller then makes sure that [`discard`](Self::discard) is called.
    fn close(&self, _cause: CloseReason) {}
    /// Drops the work of a job that is closed, or is about to be by its runner. Several threads may
    /// call it.
    fn discard(&self) {}
    /// Why the job's own code should end soon, if it should.
    fn end_request(&self) -> Option<CloseReason> {
        None
    }
    /// Runs `f` inside the span in which the job was submitted.
    fn in_span(&self, f: &mut dyn FnMut()) {
        f();
    }
}

/// A lane at one of its priorities, as its jobs see it.
pub(crate) trait Schedule: Clone + Send + Sync + 'static {
    /// Why the jobs end of a lane that is closed.
    fn reason_for_jobs(&self) -> Option<CloseReason>;
    /// Pushes the job to the queue. It is new or was woken.
    fn enqueue(&self, job: Arc<dyn Runnable>, is_short: bool, key: Option<&Key>);
    /// Has the job, which was woken, run where the Tokio tasks that it has spawned run.
    fn enqueue_beside_parts(&self, job: Arc<dyn Runnable>, is_short: bool, key: Option<&Key>);

    /// The step of the job has ended, or it has none: so has the turn of its key, if there is one.
    fn end_turn(&self, popped: &mut Popped);
    /// Whether the site's next step goes before those that are not known to be short.
    fn is_short(&self, has_key: bool) -> bool;
    /// Registers a job that may be in none of the lane's queues, so that a shutdown
    /// finds it. The job stays registered until it has ended.
    fn register(&self, job: Arc<dyn Runnable>) -> RegistryKey;
    fn unregister(&self, key: RegistryKey);

    /// While the returned guard lives, the watch sees this thread in a step of the job.
    fn enter_step(&self, is_closure: bool, deadline: Option<Instant>) -> Option<Entered>;
    /// Whether this thread is one of the lane's workers.
    fn is_own_worker(&self) -> bool;

    fn counters(&self) -> &Counters;
    /// The call site of the job.
    fn site(&self) -> Name;
    /// Counts a detached job that was closed. It has no awaiter, so the log reports it.
    fn count_lost(&self);

    fn count(&self, event: Event) {
        self.counters().count_from(thread_number(), event);
    }
}

/// The index of a job in the registry, plus one, so that an `Option` of it is no
/// larger.
pub(crate) type RegistryKey = NonZeroUsize;
