//! The limits of the queues.

use std::time::Duration;

use tokio::sync::Semaphore;

use super::Builder;
use crate::build_error::BuildError;
use crate::limits::Limit;
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
    /// job passes to `spawn_io`, until that future's task is [detached](crate::Task::detach): also
    /// where the job hands the task to other code. A thread that the job itself has started needs a
    /// permit, like any other thread.
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
    /// threads x (1 + longest useful wait / time of a job), or [`max_wait`](Self::max_wait); see
    /// `twolane::guide::overload`. A limited queue costs each job a small
    /// allocation, and the semaphore's lock, which is held for a few instructions.
    ///
    /// # Examples
    ///
    /// ```
    /// use twolane::{CpuRuntime, Priority};
    /// let settings = CpuRuntime::builder().queue_limit(Priority::Normal, 64);
    /// ```
    pub fn queue_limit(mut self, priority: Priority, jobs: usize) -> Self {
        self.limits[priority.index()].jobs = Some(jobs);
        self
    }

    /// Refuses the jobs of a priority that would wait for a thread for longer than that, from 1 ms
    /// to 10 minutes. Default: no limit.
    ///
    /// The first setting of a service that should answer in time or not at all: how long a request
    /// may wait is known, and how many jobs that is is not. The lane measures how long the jobs of
    /// each [call site](crate::Handle::call_sites) take, and adds up what those before a new one
    /// are expected to take. What is refused, what waits, and what needs no permit is as with
    /// [`queue_limit`](Self::queue_limit). Both may be set. The error has
    /// [`retry_after`](crate::JoinError::retry_after).
    ///
    /// **What to expect.** While more work comes than the lane can do, a job waits for nine tenths
    /// of this time, and 99 in 100 for at most 1.2 times as long, if it is the time of five jobs or
    /// more, and the load is about as it was in the last seconds. With less, threads idle at times.
    /// While less work comes, only a burst is refused, or a long job beside many short ones.
    ///
    /// | | |
    /// |---|---|
    /// | a call site without a job that has ended | counts as an eighth of the limit: of its first jobs, each thread takes on eight |
    /// | jobs of one call site that differ | count as their mean. Where a few are much longer than the others, [name](crate::Handle::with_name) these apart |
    /// | jobs suddenly take ten times as long | those that are queued wait as long as it takes. New ones are refused at once, and after some jobs by what they take now. A single long one changes little |
    /// | the machine stood still | the same |
    /// | a job that takes longer than this time | is admitted where a thread idles, if short jobs use less than half of one |
    /// | [short jobs](Self::short_jobs_first) | have four fifths of the threads, and are refused for the short ones before them |
    /// | the others beside them | are refused for the others before them, over what short ones leave: these may take half more than they did in the last two `max_wait`, and four fifths at most. So where short jobs take half of the time, the others have a quarter of the room, and a long job may be refused though one alone is before it. If short jobs begin to come all at once, others that were admitted before wait longer |
    /// | a future | counts while it is queued or runs, with one step: what it computes after a yield comes on top. What wakes it is not refused. Where futures compute for long, set a `queue_limit` too |
    /// | a [stream](crate::Handle::stream_from_cpu) | the same: one step, and nothing while it waits for its reader, or its source. So slow readers get no job refused, and take memory: set a `queue_limit` too |
    /// | a permit of [`try_reserve`](crate::Handle::try_reserve) | counts nothing. Its job is admitted or refused when it comes, like any other: a slow upload keeps no place. How many permits there may be is the matter of a `queue_limit` |
    /// | a permit of [`reserve`](crate::Handle::reserve) | waits until there is room for a short job and for another one. Its job is not refused. Of such permits that are not used yet there are as many as threads, and one that is kept is forgotten at the end of a `max_wait` |
    /// | a job that was cancelled before it began | counts nothing |
    /// | jobs that jobs submit | are never refused, but count |
    /// | jobs of a [key](crate::Handle::with_key) | are refused for those of their key, over the part of the threads that the key gets: its weight over the weights of all keys that have jobs queued or running (and one for jobs without a key, if there are any). Short ones and others of a key count together. Where all jobs fill the room, a job has to fit into that part itself. Its permits, also those of `reserve`, count nothing, and their jobs may be refused. Keys that come later make those that were admitted wait longer |
    /// | another priority | has a limit of its own. That it takes the cores shows in how long jobs take, as do pauses for a CPU quota |
    ///
    /// The cost: a job reads the clock twice, the CPU time of its thread at most each 10 µs, and
    /// changes two counters of its priority twice.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use std::time::Duration;
    /// use twolane::{CpuRuntime, Priority};
    /// let in_time = Duration::from_millis(500);
    /// let cpu = CpuRuntime::builder().max_wait(Priority::Normal, in_time).build().unwrap();
    /// assert_eq!(cpu.spawn_cpu(|| 6 * 7).await.unwrap(), 42);
    /// # }
    /// ```
    pub fn max_wait(mut self, priority: Priority, wait: Duration) -> Self {
        self.limits[priority.index()].wait = Some(wait);
        self
    }
}

pub(super) fn check(limits: [Limit; Priority::ALL.len()]) -> Result<(), BuildError> {
    let max = Semaphore::MAX_PERMITS;
    let (least, most) = (Duration::from_millis(1), Duration::from_secs(600));
    for (priority, limit) in Priority::ALL.into_iter().zip(limits) {
        let asked = limit.jobs.unwrap_or(max);
        BuildError::unless((1..=max).contains(&asked), || {
            format!(
                "Builder::queue_limit({priority:?}, {asked}): a limit is 1 to {max} jobs; \
                 leave it out for none"
            )
        })?;
        let asked = limit.wait.unwrap_or(most);
        BuildError::unless((least..=most).contains(&asked), || {
            format!(
                "Builder::max_wait({priority:?}, {asked:?}): it is {least:?} to {most:?}; \
                 leave it out for no limit"
            )
        })?;
    }
    Ok(())
}
