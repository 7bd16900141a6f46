//! The limits of the queues.

use tokio::sync::Semaphore;

use super::Builder;
use crate::build_error::BuildError;
use crate::priority::Priority;

impl Builder {
    /// Limits the jobs of a priority: queued, running and suspended ones together.
    ///
    /// The limit counts jobs that the lane has accepted and that have not ended, each as one.
    /// It is at least 1. Default: no limit, as with Tokio.
    ///
    /// The submitter chooses what happens when the queue is full:
    ///
    /// | form | if the queue is full |
    /// |---|---|
    /// | [`spawn_cpu`](crate::Handle::spawn_cpu), [`spawn_cpu_with`](crate::Handle::spawn_cpu_with), [`spawn`](crate::Handle::spawn) | the task fails with [`JoinErrorKind::QueueFull`](crate::JoinErrorKind::QueueFull); the closure is dropped |
    /// | [`reserve`](crate::Handle::reserve) | waits for a permit, in FIFO order |
    /// | [`try_reserve`](crate::Handle::try_reserve) | an error, before there is a closure |
    ///
    /// **What the lane's threads submit needs no permit**, at any priority: a job that waits for
    /// another job never waits for the permit that it holds itself. The same holds for rayon
    /// children, `tokio::spawn` and `spawn_blocking` inside `in_cpu_context`, thread hooks and
    /// destructors, and for the source of a `stream_from_io`. It also holds inside a future that a
    /// job passes to `spawn_io`, until that future's task is [detached](crate::Task::detach), or
    /// polled outside of the lane. A thread that the job itself has started needs a permit, like
    /// any other thread.
    ///
    /// A job of another lane needs one, too: if a job of lane A awaits a job of lane B, and that
    /// one a permit of A, the permit may never come.
    ///
    /// So the limit counts the jobs that come from outside, until each has ended. A closure has
    /// ended when it has returned, even if its task was dropped before.
    ///
    /// **The limit bounds memory.** If a queued job is cancelled, its task fails at once.
    /// The permit is released later: when the job's turn comes and its captures are
    /// dropped. So callers that give up and try again cannot pile up captures. It does not
    /// bound what a job submits: jobs that submit jobs (`twolane::guide::overload`) have a window,
    /// or a task that waits for permits.
    ///
    /// A [`stream_from_cpu`](crate::Handle::stream_from_cpu) is a job. A full queue refuses
    /// it, and its reader gets the error.
    ///
    /// **A stream needs no permit.** The workers of
    /// `on_cpu`, and the job that calls an iterator, are jobs
    /// of this priority that the limit does not count: at most one worker for each thread,
    /// and the stream's window bounds what they hold. So a full queue neither refuses nor
    /// delays a stream, and what its stages submit needs no permit either. What its source
    /// submits from the I/O lane does, unless a job has started the stream. To limit the
    /// number of streams, keep a permit beside each ([`reserve`](crate::Handle::reserve)), or
    /// read it in a job, which has one.
    ///
    /// **The limit applies to this priority alone.** The other priorities stay unlimited,
    /// and there [`try_reserve`](crate::Handle::try_reserve) succeeds until the lane closes.
    ///
    /// With as many jobs as threads there is no queue: the threads idle between the end
    /// of a job and the next submission. To shed load, use
    /// threads x (longest useful wait / time of a job); see
    /// `twolane::guide::overload`. A limited queue costs each job two small
    /// allocations, and the semaphore's lock, which is held for a few instructions.
    ///
    /// # Examples
    ///
    /// ```
    /// use twolane::{CpuRuntime, Priority};
    /// let settings = CpuRuntime::builder().queue_limit(Priority::Normal, 64);
    /// ```
    pub fn queue_limit(mut self, priority: Priority, jobs: usize) -> Self {
        self.queue_limits[priority.index()] = Some(jobs);
        self
    }
}

pub(super) fn check(limits: [Option<usize>; Priority::ALL.len()]) -> Result<(), BuildError> {
    let max = Semaphore::MAX_PERMITS;
    for (priority, limit) in Priority::ALL.into_iter().zip(limits) {
        let asked = limit.unwrap_or(max);
        BuildError::unless((1..=max).contains(&asked), || {
            format!(
                "Builder::queue_limit({priority:?}, {asked}): a limit is 1 to {max} jobs; \
                 leave it out for none"
            )
        })?;
    }
    Ok(())
}
