//! Methods of [`Handle`] that return another handle.

use std::marker::PhantomData;
use std::time::Instant;

use stallwatch::Name;

use super::{EnterGuard, Handle, IoHandle, NoCurrentHandle};
use crate::error::JoinError;
use crate::key::Key;
use crate::lane::thread;
use crate::priority::Priority;

/// # Other handles
impl Handle {
    /// Returns the current handle.
    ///
    /// That is the handle entered on this thread ([`enter`](Self::enter)). Without
    /// one it is the handle of the job or lane thread that runs this code, and without
    /// that the process's default ([`set_process_default`](Self::set_process_default)).
    ///
    /// A job has a current handle, at the job's own [`Priority`](crate::Priority). So
    /// has code that the job passes to `spawn_io` or to `rayon::join`. Code that the
    /// job starts with `tokio::spawn`, `spawn_blocking` or on a thread of its own has
    /// none; inside [`in_cpu_context`](crate::in_cpu_context) the first two have one. A
    /// request handler on the I/O lane has none either. There, keep a handle in the
    /// application's state, or set the process's default.
    ///
    /// # Panics
    ///
    /// If there is no current handle; see [`try_current`](Self::try_current).
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// cpu.spawn_cpu(|| twolane::Handle::current().worker_threads()).wait().unwrap();
    /// ```
    #[track_caller]
    pub fn current() -> Self {
        match Self::try_current() {
            Ok(handle) => handle,
            Err(none) => panic!("{none}"),
        }
    }

    /// Returns the current handle, as [`current`](Self::current), or an error.
    ///
    /// # Errors
    ///
    /// [`NoCurrentHandle`] if there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(twolane::Handle::try_current().is_err());
    /// ```
    pub fn try_current() -> Result<Self, NoCurrentHandle> {
        thread::current().map(Self::new).ok_or(NoCurrentHandle)
    }

    /// Makes this the current handle of this thread until the guard is dropped.
    ///
    /// Guards nest: drop them in the reverse order of `enter`, as scopes do. Don't hold one
    /// across an `.await`. For the rest of a thread's life, [`forget`](std::mem::forget) the guard.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let handle = cpu.handle();
    /// let _entered = handle.enter();
    /// assert_eq!(twolane::spawn_cpu(|| 1).wait().unwrap(), 1);
    /// ```
    pub fn enter(&self) -> EnterGuard<'_> {
        EnterGuard {
            number: thread::enter(&mut Some(self.submitter.clone()), false),
            _thread_bound: PhantomData,
        }
    }

    /// Sets the handle that is current where no other is; returns the previous one.
    ///
    /// For programs with one `CpuRuntime`. In tests prefer handles: a default set in
    /// one `#[tokio::test]` stops working when that test's runtime ends. A later test
    /// that uses it gets
    /// [`JoinErrorKind::IoRuntimeGone`](crate::JoinErrorKind::IoRuntimeGone).
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// twolane::Handle::set_process_default(Some(cpu.handle().clone()));
    /// assert_eq!(twolane::spawn_cpu(|| 1).wait().unwrap(), 1);
    /// ```
    pub fn set_process_default(handle: Option<Self>) -> Option<Self> {
        let submitter = handle.map(|handle| handle.submitter);
        thread::set_process_default(submitter).map(Self::new)
    }

    /// Returns a handle of the same lane at another [`Priority`].
    ///
    /// Jobs spawned by the returned handle run on that priority's threads. (Short ones of `Normal` may
    /// run on one of `High`: see [`Builder::short_jobs_first`](crate::Builder::short_jobs_first).)
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::Priority;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let urgent = cpu.handle().with_priority(Priority::High);
    /// let nested = urgent.spawn(async {
    ///     // Without a handle, a job spawns at its own priority.
    ///     twolane::spawn_cpu(|| twolane::Handle::current().priority()).await.unwrap()
    /// });
    /// assert_eq!(nested.await.unwrap(), Priority::High);
    /// # }
    /// ```
    pub fn with_priority(&self, priority: Priority) -> Self {
        self.with(|submitter| submitter.priority = priority)
    }

    /// Returns a handle whose jobs go by that name in [`call_sites`](Self::call_sites).
    ///
    /// Without it they go by the file and line of the call that submits them. Use it
    /// where one line submits the jobs of many callers. Keep the handle: the call looks
    /// the name up in a table of the process. That table has room for 4,096 sites and never
    /// shrinks, so name kinds of jobs, not single ones. Once it is full, new names have no
    /// effect, and jobs of new lines are counted as `other`.
    ///
    /// The lane learns the [length](crate::Builder::short_jobs_first) of a name's jobs as it does
    /// of a line's: give jobs of one line that differ much in length names of their own.
    ///
    /// A name longer than 256 bytes is cut between two characters and ends in `…`: two names
    /// that are equal up to there are one. So all names of a process take 1 MiB at most.
    ///
    /// The name goes along with the priority: through
    /// [`with_priority`](Self::with_priority), and as the current handle where this one is
    /// [entered](Self::enter). Inside the jobs themselves the current handle has no name.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let decode = cpu.handle().with_name("decode");
    /// decode.spawn_cpu(|| 6 * 7).await.unwrap();
    /// assert_eq!(cpu.handle().call_sites()[0].site, "decode");
    /// # }
    /// ```
    pub fn with_name(&self, name: &str) -> Self {
        self.with(|submitter| submitter.site = Name::named(name))
    }

    /// Returns a handle whose jobs get the share of that key: a tenant, a user, an API token.
    ///
    /// Keys that have jobs queued at a priority share its threads equally, or by
    /// [weight](Key::with_weight). So a flood of one does not queue before the others. Jobs without
    /// a key are those of one more key, of weight 1. The guide says when you need it:
    /// `twolane::guide::fair`.
    ///
    /// - **What a job takes is measured** when its step ends, and charged to its key: the CPU time of
    ///   its thread, or an eighth of the time if that is more, since a job that sleeps keeps a
    ///   thread. So ten jobs of 1 ms cost as much as one of 10 ms. Not counted is what rayon runs for
    ///   the job on other threads.
    /// - **An absent key earns no credit.** It keeps its debt until the others have had as much, or no
    ///   job is queued. A key that comes is behind those that have used less.
    /// - **A future is charged by step**, and so is a stream: not what it computes
    ///   [`in_cpu_context`](crate::in_cpu_context).
    /// - **A running job is not interrupted.** A key waits for the jobs that run now.
    /// - Within a key short jobs pass long ones, as [without](crate::Builder::short_jobs_first), and
    ///   else the order is FIFO.
    ///
    /// **Limits.** A key has room for [256 jobs](Key::with_max_jobs) that have not ended; one more
    /// fails with [`KeyFull`](crate::JoinErrorKind::KeyFull). Some ten thousand keys may have jobs
    /// at a time; a job of one more fails with [`QueueFull`](crate::JoinErrorKind::QueueFull). A
    /// [`queue_limit`](crate::Builder::queue_limit) counts all jobs. With a
    /// [`max_wait`](crate::Builder::max_wait) a key may fill the part of the room that its share is.
    /// [`reserve`](Self::reserve) waits for the `queue_limit` alone, and has a place of its key
    /// meanwhile; else it fails as [`try_reserve`](Self::try_reserve) does.
    ///
    /// The key goes along as the [name](Self::with_name) does. Inside the jobs themselves the
    /// current handle has no key. What a job of the lane submits is not refused, but it counts.
    /// [`install`](Self::install) waits for no turn, and is not charged.
    ///
    /// # Cost
    ///
    /// About a microsecond for a job: an allocation, two locks that workers take, and two readings
    /// of the clock. Jobs without a key cost as much while jobs of keys are queued or run, and until
    /// they have had as much as these. A key that is known takes 0.5 to 1 KB, and the first one of a
    /// priority a table of 256 KB.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), twolane::JoinError> {
    /// use twolane::{JoinErrorKind, Key};
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let tenant = cpu.handle().with_key(Key::new("acme").with_max_jobs(32));
    /// match tenant.spawn_cpu(|| 6 * 7).await {
    ///     Err(error) if error.kind() == JoinErrorKind::KeyFull => println!("429: {error}"),
    ///     Err(error) if error.is_unavailable() => println!("503: {error}"),
    ///     answer => assert_eq!(answer?, 42),
    /// }
    /// # Ok(()) }
    /// ```
    pub fn with_key(&self, key: impl Into<Key>) -> Self {
        self.with(|submitter| submitter.key = Some(key.into()))
    }

    /// Returns a handle whose jobs have a deadline: a time after which they are of no use.
    ///
    /// The lane compares the deadline when a job's turn comes and, if the job is a future,
    /// before each later poll. A job past its deadline does not run, and its task returns
    /// [`JoinErrorKind::Expired`](crate::JoinErrorKind::Expired). A closure that already runs sees
    /// the deadline through
    /// [`JobContext::checkpoint`](crate::JobContext::checkpoint).
    ///
    /// There is no timer. The awaiter of an expired job gets the error when the job's turn
    /// comes, or at once if the deadline passed before the submission. If the awaiter needs an
    /// answer at the deadline itself, put Tokio's `timeout_at` around the task: it drops the
    /// task, and so aborts the job.
    ///
    /// Of two deadlines the earlier one holds. A deadline is real time, also while Tokio's clock
    /// is paused. It applies to the jobs and permits of this handle, and not to what those jobs
    /// submit themselves, to [`spawn_io`](Self::spawn_io) or to streams. Nor does it travel
    /// with [`enter`](Self::enter) and
    /// [`set_process_default`](Self::set_process_default): the current handle has none. A
    /// `tokio::time::Instant` is turned into this one with `into_std`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use std::time::{Duration, Instant};
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let received = Instant::now(); // ... and the client waits for a second
    /// let in_time = cpu.handle().with_deadline(received + Duration::from_secs(1));
    /// assert_eq!(in_time.spawn_cpu(|| 42).await.unwrap(), 42);
    /// let late = in_time.with_deadline(received);
    /// let error = late.spawn_cpu(|| 42).await.unwrap_err();
    /// assert_eq!(error.kind(), twolane::JoinErrorKind::Expired);
    /// # }
    /// ```
    pub fn with_deadline(&self, deadline: Instant) -> Self {
        Self::new(self.submitter.clone().with_deadline(deadline))
    }

    /// Returns a handle whose jobs need no permit of a queue with a
    /// [limit](crate::Builder::queue_limit).
    ///
    /// For jobs whose number and memory something else bounds: a window, a semaphore of your
    /// own, a fixed number of them. A job that waits for such a job may hold the last permit.
    /// What these jobs submit by the current handle needs no permit either.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::Priority;
    /// let cpu = twolane::CpuRuntime::builder().queue_limit(Priority::Normal, 1).build().unwrap();
    /// let permit = cpu.handle().try_reserve().unwrap(); // the only one
    /// let error = cpu.spawn_cpu(|| 1).await.unwrap_err();
    /// assert_eq!(error.kind(), twolane::JoinErrorKind::QueueFull);
    /// assert_eq!(cpu.handle().without_limit().spawn_cpu(|| 1).await.unwrap(), 1);
    /// # drop(permit);
    /// # }
    /// ```
    pub fn without_limit(&self) -> Self {
        self.with(|submitter| submitter.is_unlimited = true)
    }

    /// Returns the handle of the I/O lane alone, which works after a shutdown of the CPU lane
    /// as well.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let io = cpu.handle().io();
    /// drop(cpu);
    /// assert_eq!(io.spawn(async { 6 * 7 }).await.unwrap(), 42);
    /// # }
    /// ```
    pub fn io(&self) -> IoHandle {
        let submitter = self.submitter.clone();
        IoHandle { submitter }
    }

    /// Returns the handle of the lane's own Tokio runtime, for libraries that take one. Each
    /// [priority](Self::with_priority) has its own, beside the threads that run its jobs: as many more
    /// threads, of the same weight.
    ///
    /// The first call for a priority, or the first poll [`in_cpu_context`](crate::in_cpu_context), starts
    /// these threads, and **blocks** until they have run their start hooks: some milliseconds, or ten
    /// seconds if the system gives too few. So call it once, where the program starts.
    ///
    /// What is spawned with it computes on these threads. It is a task of Tokio, and no job: no permit, no
    /// deadline, and no counter but [`Metrics::tokio_tasks`](crate::metrics::Metrics::tokio_tasks). The
    /// current handle in it is that of the lane. `spawn_blocking` there starts threads of the lane, with
    /// its nice value. While jobs compute too, both kinds of threads share the cores.
    ///
    /// That runtime has timers and no I/O driver. A socket that is opened there panics with Tokio's
    /// message, *"A Tokio 1.x context was found, but IO is disabled"*: give requests to
    /// [`spawn_io`](crate::spawn_io) or to an adapter. The guide says what that means for the
    /// libraries that it knows: `twolane::guide::engines`.
    ///
    /// A shutdown drops these tasks between two of their polls, and counts those that are left
    /// ([`Remaining`](crate::Remaining)). It first closes the lane's queued and suspended jobs, on a
    /// thread of the lane: until then what is spawned may still run to its end. What is spawned once
    /// [`CpuRuntime::shutdown`](crate::CpuRuntime::shutdown) has resolved never runs. So close the
    /// library first. A closure of `spawn_blocking` that never returns holds a shutdown up.
    ///
    /// # Errors
    ///
    /// [`JoinErrorKind::NoThreads`](crate::JoinErrorKind::NoThreads) if the operating system gives none,
    /// and in the waker of a job that a shutdown closes; those of a closed lane.
    ///
    /// # Panics
    ///
    /// In an [`on_thread_start`](crate::Builder::on_thread_start) hook of the same lane.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), twolane::JoinError> {
    /// use twolane::{CpuRuntime, Priority};
    /// let cpu = CpuRuntime::new().unwrap();
    /// let compaction = cpu.handle().with_priority(Priority::Low).tokio_handle()?;
    /// let sum = compaction.spawn(async { (1..=10_u64).sum::<u64>() }); // or a library does
    /// assert_eq!(sum.await.unwrap(), 55);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn tokio_handle(&self) -> Result<tokio::runtime::Handle, JoinError> {
        self.submitter.check_open()?;
        let companion = self.submitter.level().started_companion()?;
        Ok(companion.handle.clone())
    }
}
