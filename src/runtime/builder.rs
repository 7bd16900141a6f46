//! Settings, checked, into a [`CpuRuntime`].

use std::fmt;
use std::sync::mpsc;

use tokio::sync::Semaphore;

use super::{CpuRuntime, nice};
use crate::backend::Backend;
use crate::build_error::BuildError;
use crate::io_lane::IoLane;
use crate::lane::{Lane, Level, ThreadHooks, ThreadSettings, control};
use crate::os::throttle::Throttle;
use crate::os::{sizing, starter};
use crate::pool;
use crate::priority::Priority;
use crate::task::budget;

/// Settings of a [`CpuRuntime`].
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::builder()
///     .threads(2)
///     .thread_name("indexer")
///     .on_thread_start(|| { /* pin the thread, name it in a profiler ... */ })
///     .build()
///     .unwrap();
/// let name = cpu.spawn_cpu(|| std::thread::current().name().map(str::to_owned)).await.unwrap();
/// assert!(name.unwrap().starts_with("indexer-"));
/// # }
/// ```
#[must_use = "settings make nothing before `build`"]
pub struct Builder {
    backend: Backend,
    threads: Option<usize>,
    name: String,
    io: Option<tokio::runtime::Handle>,
    pub(super) nice: [u8; Priority::ALL.len()],
    queue_limits: [Option<usize>; Priority::ALL.len()],
    #[cfg(feature = "idle-class")]
    pub(super) idle_class_for_low: bool,
    throttle_to_quota: bool,
    #[cfg(feature = "test-util")]
    holds_paused_clock: bool,
    hooks: ThreadHooks,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            backend: Backend::default(),
            threads: None,
            name: "twolane".to_owned(),
            io: None,
            nice: nice::DEFAULT_NICE,
            queue_limits: Default::default(),
            #[cfg(feature = "idle-class")]
            idle_class_for_low: false,
            throttle_to_quota: true,
            #[cfg(feature = "test-util")]
            holds_paused_clock: false,
            hooks: ThreadHooks::default(),
        }
    }

    /// What runs the jobs. Default: [`Backend::Rayon`].
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().backend(twolane::Backend::Runtime);
    /// ```
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// How many threads compute, at each [`Priority`]: once two of them are in
    /// use, there are twice as many. Default:
    /// [`default_threads`](crate::default_threads), one per core, or fewer under
    /// a CPU quota; what is set here comes before the environment's `TWOLANE_CPU_THREADS`.
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().threads(1);
    /// ```
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// What the threads are called: `NAME-0`, `NAME-1`, ..., those of the other
    /// priorities `NAME-high-0` and `NAME-low-0`, and `NAME-control`. Default:
    /// `twolane`. Linux shows the first 15 bytes. (`twolane-starter`
    /// and `twolane-ticker` belong to the process and not to a lane. They sleep, as
    /// does the control thread; the ticker while no future runs.)
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().thread_name("query");
    /// ```
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The Tokio runtime that is the I/O lane. Default: the one that surrounds
    /// [`build`](Self::build).
    ///
    /// It must outlive the `CpuRuntime`, and somebody must drive it: a
    /// `current_thread` runtime does I/O only while its `block_on` runs, and
    /// what is given to [`spawn_io`](crate::Handle::spawn_io) waits until
    /// then. [`Handle::io_lane_state`](crate::Handle::io_lane_state) tells.
    ///
    /// ```
    /// let io = tokio::runtime::Runtime::new().unwrap();
    /// let cpu = twolane::CpuRuntime::builder().io_handle(io.handle().clone()).build().unwrap();
    /// ```
    pub fn io_handle(mut self, io: tokio::runtime::Handle) -> Self {
        self.io = Some(io);
        self
    }

    /// How many jobs of a priority may be taken on and not have ended: queued,
    /// running and suspended ones together. At least 1. Default: no limit, as
    /// with Tokio.
    ///
    /// What a full queue does with one more is the submitter's choice:
    ///
    /// | form | if the queue is full |
    /// |---|---|
    /// | [`spawn_cpu`](crate::Handle::spawn_cpu), [`spawn`](crate::Handle::spawn) | the task says [`is_queue_full`](crate::JoinError::is_queue_full); the closure is dropped |
    /// | [`try_spawn_cpu`](crate::Handle::try_spawn_cpu), [`try_spawn`](crate::Handle::try_spawn) | an error that hands the closure back |
    /// | [`admit`](crate::Handle::admit) | waits for a permit, in FIFO order |
    /// | [`try_admit`](crate::Handle::try_admit) | an error, before there is a closure |
    ///
    /// **What a job submits goes in by the job's own permit**, whatever the
    /// priority: a job that waits for another can't wait for a permit that it holds
    /// itself. The permit comes free when the job and all that went in by it have
    /// ended; a closure has ended when it returned, whether or not its task was
    /// dropped before. That holds on the job's thread, and inside of what it gave to
    /// `spawn_io` as long as the job holds its permit. So the limit is one of jobs
    /// that come from outside, each with all that it submits. Code on the lane's
    /// threads that is part of no known job goes in without a permit, and so does
    /// what it gives to `spawn_io`: a child of rayon's that another thread has
    /// stolen, a `tokio::spawn` or `spawn_blocking` on `Backend::Runtime`, `install`,
    /// thread hooks, destructors. A thread of the job's own making is like any other.
    ///
    /// **It bounds memory.** The task of a queued job that is cancelled says so at
    /// once; its permit comes free when the job's turn comes and what it has captured
    /// is dropped. So callers that give up and try again cannot pile up captures.
    ///
    /// A [`stream_from_cpu`](crate::Handle::stream_from_cpu) is a job: a full queue
    /// refuses it, and its reader is told.
    ///
    /// **It is for this priority alone**: the others stay unbounded, and there
    /// [`try_admit`](crate::Handle::try_admit) always succeeds.
    ///
    /// With n threads a limit of n leaves no queue at all, and the threads idle
    /// between an end and the next submission. For load that shall be shed:
    /// threads x (longest wait that is of use / time a job takes). A limited
    /// queue costs each job two small allocations, and the semaphore's short lock.
    ///
    /// ```
    /// use twolane::{CpuRuntime, Priority};
    /// let settings = CpuRuntime::builder().queue_limit(Priority::Normal, 64);
    /// ```
    pub fn queue_limit(mut self, priority: Priority, jobs: usize) -> Self {
        self.queue_limits[priority.index()] = Some(jobs);
        self
    }

    /// Whether the lane's threads pause between jobs when the process is about
    /// to use up its cgroup's CPU quota. Default: yes, if there is such a quota
    /// and it is below the number of cores that the process may run on. It is
    /// read once, here.
    ///
    /// A process that has used up its quota is stopped as a whole until the
    /// next period (100 ms, mostly): the I/O lane too. With this the CPU lane
    /// takes nine tenths of the quota, less what the rest of the process uses,
    /// but a tenth at least, however much that is. High goes before: it pauses
    /// only for what High itself has used. Then Normal, then Low.
    ///
    /// Jobs are not interrupted, so it can't help against one that computes for
    /// longer than the quota of a period; cut those up, or let them be futures
    /// that [`yield_if_due`](crate::yield_if_due). Nor is all paced that
    /// computes: not what runs outside of jobs (children of a `par_iter`,
    /// [`install`](crate::Handle::install), Tokio tasks of
    /// [`Backend::Runtime`]), and not other processes of the same group; though
    /// the former are counted. A pause is the thread's: on `Backend::Runtime`
    /// that runtime's timers and tasks wait with it. Each job reads a clock for
    /// it, and at most every 250 µs its thread reads two more, under a lock that
    /// no thread waits for; nothing where there is no such quota. `Debug` of a
    /// handle shows the quota. It is looked for below `/sys/fs/cgroup`, where
    /// systemd and container runtimes mount the cgroups.
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().throttle_to_quota(false);
    /// ```
    pub fn throttle_to_quota(mut self, pace: bool) -> Self {
        self.throttle_to_quota = pace;
        self
    }

    /// For tests with `tokio::time::pause` (`#[tokio::test(start_paused = true)]`):
    /// the clock stands while closures are queued or run, as it does for Tokio's own
    /// `spawn_blocking`. Without, the runtime sees nothing of them, takes itself for
    /// idle, and a timeout around a task fires at once.
    ///
    /// The clock is that of the I/O lane, or of the runtime that a job is submitted
    /// in, whichever is a `current_thread` runtime. It takes a thread of that one's
    /// blocking pool for each closure, whether or not the clock is paused; so it is
    /// for tests alone. A future holds nothing: it may wait for that very clock. Nor
    /// does `spawn_io`. Deadlines and `shutdown_timeout` go by real time.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use std::time::Duration;
    /// let cpu = twolane::CpuRuntime::builder().hold_paused_clock().build().unwrap();
    /// let answer = cpu.spawn_cpu(|| (1..=1_000_000_u64).sum::<u64>());
    /// let in_time = tokio::time::timeout(Duration::from_secs(5), answer).await;
    /// assert_eq!(in_time.unwrap().unwrap(), 500_000_500_000);
    /// # }
    /// ```
    #[cfg(feature = "test-util")]
    pub fn hold_paused_clock(mut self) -> Self {
        self.holds_paused_clock = true;
        self
    }

    /// Runs on each computing thread of the lane, of every priority, when it
    /// starts: after twolane's own preparations (it has its weight) and before
    /// any job. May be called more than once: all run, in that order. A panic
    /// in it is logged and ends there.
    ///
    /// With [`Backend::Runtime`] threads of that runtime's blocking pool run
    /// it too.
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().on_thread_start(|| println!("hello"));
    /// ```
    pub fn on_thread_start(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.on_start(hook);
        self
    }

    /// Runs on each thread of the lane when it ends; else as
    /// [`on_thread_start`](Self::on_thread_start).
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().on_thread_stop(|| println!("bye"));
    /// ```
    pub fn on_thread_stop(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.on_stop(hook);
        self
    }

    /// Starts the threads of [`Priority::Normal`], and returns when they are
    /// ready (well below a millisecond, unless a start hook takes longer).
    ///
    /// # Errors
    /// [`BuildError`]: no I/O runtime, one that is gone, a number of threads
    /// (here or in `TWOLANE_CPU_THREADS`), a name or nice values that can't be,
    /// or no threads to be had.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let err = twolane::CpuRuntime::builder().threads(0).build().unwrap_err();
    /// assert!(err.to_string().starts_with("Builder::threads(0): "));
    /// ```
    pub fn build(self) -> Result<CpuRuntime, BuildError> {
        let threads = self.checked_threads()?;
        self.check_nice()?;
        self.check_queue_limits()?;
        if self.name.contains('\0') {
            return Err(BuildError::ThreadName { asked: self.name });
        }
        let io = match &self.io {
            Some(io) => io.clone(),
            None => tokio::runtime::Handle::try_current().map_err(|_| BuildError::NoIoRuntime)?,
        };
        let io = IoLane::watch(io);
        if io.is_gone() {
            return Err(BuildError::IoRuntimeGone);
        }

        budget::start_ticker().map_err(BuildError::Spawn)?;
        let base_nice = starter::base_nice().map_err(BuildError::Spawn)?;
        let niceness = self.niceness(base_nice);
        let settings = ThreadSettings {
            backend: self.backend,
            start: match self.backend {
                Backend::Rayon => pool::rayon::Pool::start,
                Backend::Runtime => pool::tokio::CpuTokio::start,
            },
            threads,
            name: self.name,
            hooks: self.hooks,
            #[cfg(feature = "test-util")]
            holds_paused_clock: self.holds_paused_clock,
            niceness,
        };
        let throttle = self
            .throttle_to_quota
            .then(Throttle::for_this_process)
            .flatten();
        let (messages, receiver) = mpsc::channel();
        let lane = Lane::new(settings, self.queue_limits, throttle, io, messages);
        control::start(lane.clone(), receiver).map_err(BuildError::Spawn)?;
        // From here on its drop sends the control thread and the threads home.
        let cpu = CpuRuntime::of(lane.clone());
        let (reply, started) = mpsc::channel();
        let normal = Level::new(lane, Priority::Normal);
        control::start_workers(&normal, move |outcome| drop(reply.send(outcome)));
        let outcome = started.recv();
        outcome
            .expect("the opener replies")
            .map_err(BuildError::Spawn)?;
        Ok(cpu)
    }

    fn check_queue_limits(&self) -> Result<(), BuildError> {
        let max = Semaphore::MAX_PERMITS;
        for (priority, limit) in Priority::ALL.into_iter().zip(self.queue_limits) {
            if let Some(asked) = limit.filter(|jobs| !(1..=max).contains(jobs)) {
                return Err(BuildError::QueueLimit {
                    priority,
                    asked,
                    max,
                });
            }
        }
        Ok(())
    }

    fn checked_threads(&self) -> Result<usize, BuildError> {
        let max = sizing::max();
        match self.threads {
            None => sizing::default_threads(),
            Some(asked) if (1..=max).contains(&asked) => Ok(asked),
            Some(asked) => Err(BuildError::Threads { asked, max }),
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("backend", &self.backend)
            .field("threads", &self.threads)
            .field("thread_name", &self.name)
            .field("nice", &self.nice)
            .field("queue_limits", &self.queue_limits)
            .field("throttle_to_quota", &self.throttle_to_quota)
            .finish_non_exhaustive()
    }
}
