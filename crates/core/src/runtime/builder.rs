//! [`Builder`]: checks the settings and builds a [`CpuRuntime`].

use std::sync::mpsc;

use giveway::Throttle;
use stallwatch::Watch;

use super::{CpuRuntime, limits, threads, watch_io};
use crate::build_error::BuildError;
use crate::guard::on_drop;
use crate::handle::Handle;
use crate::lane::control;
use crate::lane::{Lane, Level, Levels, Submitter, ThreadSettings, Threads, thread};
use crate::limits::Limit;
use crate::niceness::Niceness;
use crate::pool::Pool;
use crate::priority::Priority;
use crate::task::ticker;

/// Settings of a [`CpuRuntime`].
///
/// [`CpuRuntime::builder`] makes one, and [`build`](Self::build) uses it. The guide has
/// a table of all: `twolane::guide::settings`.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::builder()
///     .worker_threads(2)
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
    /// `None`: the runtime that surrounds `build`. `Some(None)`: no I/O lane.
    io: Option<Option<tokio::runtime::Handle>>,
    pub(super) threads: [Option<usize>; Priority::ALL.len()],
    pub(super) limits: [Limit; Priority::ALL.len()],
    throttle_to_quota: bool,
    pub(super) watch_io: Option<Watch>,
    /// All but the number of threads, and the nice value that they start with.
    pub(super) settings: ThreadSettings,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            io: None,
            threads: Default::default(),
            limits: Default::default(),
            throttle_to_quota: true,
            watch_io: None,
            settings: ThreadSettings {
                name: "twolane".to_owned(),
                short_jobs_first: true,
                ..ThreadSettings::default()
            },
        }
    }

    /// Sets the Tokio runtime that is the I/O lane.
    ///
    /// Default: the runtime that surrounds [`build`](Self::build). In a task of a
    /// [`tokio_handle`](crate::Handle::tokio_handle), which has no I/O, it is that lane's I/O lane.
    /// (Where another thread has entered such a handle, name the runtime here.)
    ///
    /// The runtime must outlive the `CpuRuntime`, and a thread must drive it. A
    /// `current_thread` runtime does I/O only while its `block_on` runs; a future passed
    /// to [`spawn_io`](crate::Handle::spawn_io) waits until then.
    ///
    /// # Examples
    ///
    /// ```
    /// let io = tokio::runtime::Runtime::new().unwrap();
    /// let cpu = twolane::CpuRuntime::builder().io_handle(io.handle().clone()).build().unwrap();
    /// ```
    pub fn io_handle(mut self, io: tokio::runtime::Handle) -> Self {
        self.io = Some(Some(io));
        self
    }

    /// Makes a CPU lane without an I/O lane, for code that has no Tokio runtime, or more than one: a
    /// `static`, a library, a program on another executor, a test suite where each test has a
    /// runtime of its own.
    ///
    /// The lane is bound to no runtime. Any thread may build it, with a Tokio runtime around or
    /// not, and it ends with its `CpuRuntime` alone. Closures, futures, streams, permits, deadlines,
    /// [`Task::within`](crate::Task::within) and the shutdown work as on any lane, and a task can be
    /// awaited under any executor.
    ///
    /// What does I/O is refused:
    ///
    /// | in a job | |
    /// |---|---|
    /// | [`spawn_io`](crate::Handle::spawn_io), [`Handle::io`](crate::Handle::io), and the adapters for HTTP | the task's error is [`JoinErrorKind::NoIoLane`](crate::JoinErrorKind::NoIoLane) |
    /// | [`stream_from_io`](crate::Handle::stream_from_io) | the reader gets that error |
    /// | `tokio::spawn`, timers and sockets of Tokio | Tokio panics: "there is no reactor running". Inside [`in_cpu_context`](crate::in_cpu_context) tasks and timers are those of the lane's own runtime, and a socket panics: "IO is disabled" |
    /// | [`watch_io`](Self::watch_io) | [`build`](Self::build) fails |
    ///
    /// A job may await what a caller has made on a runtime of its own, and passes in: a channel, a
    /// `tokio::spawn` by a [`Handle`](tokio::runtime::Handle) of Tokio. A start hook must not name the
    /// `static` that waits for it. A forked child has no thread of its parent's lanes, and jobs that it
    /// submits to them never end: use a `static` after the fork only, or build a lane anew.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::LazyLock;
    /// use twolane::CpuRuntime;
    ///
    /// static CPU: LazyLock<CpuRuntime> =
    ///     LazyLock::new(|| CpuRuntime::builder().without_io().build().expect("threads"));
    ///
    /// let sum = CPU.spawn_cpu(|| (1..=1_000_u64).sum::<u64>());
    /// assert_eq!(futures::executor::block_on(sum).unwrap(), 500_500);
    /// ```
    pub fn without_io(mut self) -> Self {
        self.io = Some(None);
        self
    }

    /// Sets the nice values of the lane's threads. Default: [`Niceness::default`].
    ///
    /// # Examples
    ///
    /// ```
    /// use twolane::{CpuRuntime, Niceness};
    /// let settings = CpuRuntime::builder().niceness(Niceness::off());
    /// ```
    pub fn niceness(mut self, niceness: Niceness) -> Self {
        self.settings.niceness = niceness;
        self
    }

    /// Sets whether the lane's threads pause to keep the process within its CPU quota.
    ///
    /// Default: yes, while the process's cgroup has a quota below the number of cores that
    /// the threads of the process, taken together, may run on. [`build`](Self::build) reads the quota, and a thread of the
    /// process reads it again every two seconds while the lane runs jobs. So a lane follows a
    /// container that is resized in place; its number of threads stays as it was built.
    /// The quota is read below `/sys/fs/cgroup`, where systemd and container runtimes mount
    /// the cgroups. `Debug` of a handle shows it.
    ///
    /// When a process has used up its quota, the kernel stops all of its threads until the
    /// next period (100 ms, mostly): the I/O lane too. With this setting the lane's threads
    /// pause between jobs before that happens. The CPU lane takes 95 % of the quota,
    /// less what the rest of the process uses, and at least a tenth in any case. High
    /// comes first: it pauses only for the time that High itself has used. Then come
    /// Normal and Low.
    ///
    /// - A pause does not interrupt a job. So it cannot help against a job that computes
    ///   for longer than the quota of a period. Cut such a job up, or make it a future that
    ///   calls [`yield_if_due`](crate::yield_if_due).
    /// - Work outside of jobs does not pause: children of a `par_iter`,
    ///   [`install`](crate::Handle::install), tasks of
    ///   [`in_cpu_context`](crate::in_cpu_context). Its time counts.
    /// - Other processes of the same cgroup neither pause nor count.
    /// - A pause blocks its thread, also one of the lane's own Tokio runtime, with its tasks and timers.
    ///
    /// The cost: each job reads a clock. At most every 250 µs its thread reads two more,
    /// under a lock that no thread waits for. Without such a quota, each sixteenth job of a
    /// thread reads a clock.
    ///
    /// # Examples
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().throttle_to_quota(false);
    /// ```
    pub fn throttle_to_quota(mut self, throttle: bool) -> Self {
        self.throttle_to_quota = throttle;
        self
    }

    /// Sets whether Tokio's paused clock stops while jobs are queued or run; for tests. Default: no.
    ///
    /// For tests with `tokio::time::pause` (`#[tokio::test(start_paused = true)]`). The
    /// clock then stands still as it does for Tokio's own `spawn_blocking`. Without this
    /// setting the runtime does not know of the jobs and takes itself for idle. It
    /// then advances the clock, and a timeout around a task fires at once, as does one around
    /// `next` of a stream whose stages run.
    ///
    /// The clock is that of the I/O lane or of the runtime in which a job is submitted or
    /// woken: the first of the two that is a `current_thread` runtime. Each job that is queued
    /// or runs takes a thread of that runtime's blocking pool, even if the clock is not
    /// paused. So use the setting in tests only. A future that waits lets the clock go, since
    /// it may wait for it, and so does `spawn_io`. Deadlines and `shutdown_timeout` use real
    /// time.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use std::time::Duration;
    /// let cpu = twolane::CpuRuntime::builder().hold_paused_clock(true).build().unwrap();
    /// let answer = cpu.spawn_cpu(|| (1..=1_000_000_u64).sum::<u64>());
    /// let in_time = tokio::time::timeout(Duration::from_secs(5), answer).await;
    /// assert_eq!(in_time.unwrap().unwrap(), 500_000_500_000);
    /// # }
    /// ```
    #[cfg(feature = "test-util")]
    pub fn hold_paused_clock(mut self, hold: bool) -> Self {
        self.settings.holds_paused_clock = hold;
        self
    }

    /// Sets whether the lane records how long jobs wait in the queue and how long their steps take:
    /// the fields `queue_wait` and `run_time` of [`Metrics`](crate::metrics::Metrics). Default: no,
    /// and these are empty.
    ///
    /// Each job reads the clock two or three times, and the CPU time of its thread at most each
    /// 10 µs, which takes about 100 ns.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::builder().histograms(true).build().unwrap();
    /// cpu.spawn_cpu(|| ()).await.unwrap();
    /// assert_eq!(cpu.handle().metrics().run_time.count(), 1);
    /// # }
    /// ```
    pub fn histograms(mut self, recorded: bool) -> Self {
        self.settings.has_histograms = recorded;
        self
    }

    /// Sets whether short jobs pass long ones in the queue of [`Priority::Normal`]. Default: yes.
    ///
    /// The lane knows the jobs of a [call site](crate::Handle::call_sites) by the CPU time of those
    /// before: a site is short if its jobs, or the polls of its futures, compute for less than 1 ms
    /// on average, where one counts as 4 ms at most: a site stays short if one of its jobs in a
    /// hundred is long. Such a job goes to the next free thread. While short jobs and others wait,
    /// the short ones have four fifths of the threads' time, and the others a fifth. A burst of short
    /// jobs passes the others for 100 ms of each thread (a fifth of [`max_wait`](Self::max_wait), if
    /// that is less). Of the sites that the lane does not know
    /// yet, one job at a time is tried before the long ones.
    ///
    /// If each thread of `Normal` runs a long job, a thread of `High` runs the short ones, one at a
    /// time. What rayon runs for such a job then uses the threads of `High`. There is no such help where
    /// `High` has one thread, while jobs of [keys](crate::Handle::with_key) are queued at `High` or
    /// `Normal`, and while one long job has all threads by `par_iter`.
    ///
    /// Jobs of a known site begin in their order, unless the lane has just learned that the site is
    /// short, or long. A step that sleeps or waits for a lock counts as an eighth of the time that
    /// it takes, if that is more than it computes.
    ///
    /// The lane may take a job for a long one until it knows its site. A job that must never wait for a
    /// long one belongs to [`Priority::High`].
    ///
    /// # Examples
    ///
    /// ```
    /// let fifo = twolane::CpuRuntime::builder().short_jobs_first(false);
    /// ```
    pub fn short_jobs_first(mut self, short_first: bool) -> Self {
        self.settings.short_jobs_first = short_first;
        self
    }

    /// Starts the threads of [`Priority::Normal`], and returns when they are ready.
    ///
    /// It blocks until each has run its start hooks. The threads of another priority start when its
    /// first job comes, which takes some milliseconds and blocks nobody, or at the first
    /// [`install`](crate::Handle::install) or [`tokio_handle`](crate::Handle::tokio_handle), which waits. If the operating system
    /// gives none then, the jobs that wait end with
    /// [`JoinErrorKind::NoThreads`](crate::JoinErrorKind::NoThreads), and the next one asks again.
    ///
    /// # Cores
    ///
    /// On Linux the lane's threads may use the cores that the calling thread may use (its CPU
    /// mask), also those that start later. So a lane for each NUMA node is one built on a thread
    /// that is bound to that node; and build no lane on a thread that is bound to one core, unless
    /// that is what the lane should have. The default number of threads counts the same cores.
    /// [`on_thread_start`](Self::on_thread_start) can bind each thread further. Threads of Tokio's
    /// blocking pools have the cores of the thread that needs them first, `twolane-ticker` and
    /// `giveway-ticker` those of the thread that built the first lane. A thread of
    /// [`Priority::High`] that finds another one on its core sets its mask for a moment, to leave
    /// it. So it keeps the cores that it had then, also if its cgroup gets more.
    ///
    /// The lane's threads inherit the signal mask of the calling thread, unless that one is niced,
    /// of another scheduling policy, or may have [slices](giveway::spawn) of its own. These, and the threads that belong to the process, have the
    /// mask of the thread that built the first lane. So a program that waits for signals blocks
    /// them before it builds its first lane, as before it starts any thread.
    ///
    /// # Errors
    ///
    /// [`BuildError`]: there is no I/O runtime, or it has been shut down; a number of threads (here
    /// or in `TWOLANE_CPU_THREADS`), a limit, a name, a nice value, a stack size or the threshold of
    /// the watch is invalid; or the operating system gives no threads.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let err = twolane::CpuRuntime::builder().worker_threads(0).build().unwrap_err();
    /// assert!(err.to_string().starts_with("Builder::worker_threads(0), of High: "));
    /// ```
    pub fn build(self) -> Result<CpuRuntime, BuildError> {
        let mut settings = self.settings;
        settings.threads = threads::check(self.threads, &settings)?;
        settings.niceness.check()?;
        limits::check(self.limits)?;
        let surroundings = || surrounding().map(Some);
        let io = self.io.or_else(surroundings).ok_or(BuildError::new(
            "no Tokio runtime here to be the I/O lane: build the CpuRuntime inside one \
             (#[tokio::main], Runtime::enter), name one with Builder::io_handle, or do without \
             (Builder::without_io)",
        ))?;
        BuildError::unless(io.is_some() || self.watch_io.is_none(), || {
            "Builder::watch_io: this lane has no I/O lane to watch (Builder::without_io); leave one \
             of the two out"
        })?;
        settings.base_nice = giveway::start().map_err(BuildError::no_thread)?;
        ticker::start_ticker().map_err(BuildError::no_thread)?;
        let (messages, receiver) = mpsc::channel();
        let throttle = self.throttle_to_quota.then(Throttle::new).flatten();
        let lane = Lane::new(settings, throttle, io, messages);
        BuildError::unless(lane.io.handle.is_none() || !lane.io.is_gone(), || {
            "the Tokio runtime that was to be the I/O lane has been shut down: \
             give Builder::io_handle the handle of one that runs"
        })?;
        let levels = Levels::new(lane.clone(), self.limits);
        control::start(levels.clone(), receiver, Pool::start).map_err(BuildError::no_thread)?;
        // Until then the control thread does not end.
        let _started = on_drop(|| lane.thread_ended());
        // From here on an error drops `cpu`, which stops the lane's threads.
        let handle = Handle::new(Submitter::new(levels.clone(), Priority::default()));
        let cpu = CpuRuntime { handle };
        if let Some(watch) = self.watch_io {
            watch_io::start(&levels, watch)?;
        }
        let started = levels.at(Priority::default());
        let started = started.start_and_wait(Threads::Workers);
        // A lane that is closed meanwhile says why to those who use it.
        let refused = started.err().filter(|_| !lane.is_closed());
        refused.map_or(Ok(cpu), |error| Err(BuildError::no_thread(error)))
    }
}

/// The Tokio runtime around the caller. For the companion of a lane's thread it is that lane's I/O
/// lane: the companion has no I/O.
fn surrounding() -> Option<tokio::runtime::Handle> {
    let current = tokio::runtime::Handle::try_current().ok()?;
    let io_lane = |own: &Submitter| {
        let mut levels = Priority::ALL
            .into_iter()
            .map(|priority| own.levels.at(priority));
        let is_it = |level: &Level| {
            level
                .companion()
                .is_some_and(|it| it.handle.id() == current.id())
        };
        levels
            .any(|level| is_it(level))
            .then(|| own.levels.lane.io.handle.clone())
    };
    thread::ask_own(io_lane).flatten().unwrap_or(Some(current))
}

debug_by_name!(
    Builder,
    worker_threads: |it: &Self| it.threads,
    thread_name: |it: &Self| it.settings.name.clone(),
    niceness: |it: &Self| it.settings.niceness,
    limits: |it: &Self| it.limits,
    throttle_to_quota: |it: &Self| it.throttle_to_quota
);
