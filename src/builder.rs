//! Settings, checked, into a [`CpuRuntime`].

use std::fmt;
use std::sync::mpsc;

use crate::backend::{Backend, ThreadHooks, ThreadSettings};
use crate::build_error::BuildError;
use crate::io::lane::IoLane;
use crate::lane::{Lane, Level};
use crate::os::pacer::Pacer;
use crate::os::weight::{self, Weight};
use crate::os::{sizing, starter};
use crate::priority::Priority;
use crate::runtime::CpuRuntime;
use crate::warden;

/// By priority: High, Normal, Low.
const DEFAULT_NICE: [u8; Priority::ALL.len()] = [8, 16, 19];

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
    nice: [u8; Priority::ALL.len()],
    idle_class_for_low: bool,
    pace_to_quota: bool,
    hooks: ThreadHooks,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            backend: Backend::default(),
            threads: None,
            name: "twolane".to_owned(),
            io: None,
            nice: DEFAULT_NICE,
            idle_class_for_low: false,
            pace_to_quota: true,
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
    /// priorities `NAME-high-0` and `NAME-low-0`, and `NAME-warden`. Default:
    /// `twolane`. Linux shows the first 15 bytes. (`twolane-starter`, and
    /// `twolane-ticker` once a job called `yield_if_due`, belong to the process
    /// and not to a lane. They sleep, as does the warden.)
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

    /// By how much the threads of a priority raise their nice value, 0 to 19.
    /// Default: 8 for [`High`](Priority::High), 16 for
    /// [`Normal`](Priority::Normal), 19 for [`Low`](Priority::Low). It needs no
    /// privilege. Only on Linux; elsewhere nothing is set.
    ///
    /// On Linux the nice value is a thread's weight beside those that want the
    /// same core: a factor of 1.25 a step. By default the I/O lane weighs six
    /// times as much as High, High six times as much as Normal, and Normal
    /// twice as much as Low. Weights share, so nobody starves; and a core that
    /// nobody else wants is had whole, so the CPU lane's throughput stays what
    /// it was.
    ///
    /// # Why these values
    /// A thread that wakes up gets the core at once if the one that has it is
    /// much lighter; else it waits for a slice, milliseconds. This is the p99.9
    /// of an echo on the I/O lane, once every 2 ms, while both cores compute at
    /// Normal (`cargo bench --bench io_tail -- --nice N`; 2 cores, Linux 6.18):
    ///
    /// | nice | 0 | 5 | 8 | 10 | 16 | 19 | idle machine |
    /// |---|---|---|---|---|---|---|---|
    /// | ms | 3.7 to 5 | 1.1 to 3.3 | 0.11 | 0.1 to 1.6 | 0.08 to 0.13 | 0.08 to 0.13 | 0.09 to 0.17 |
    ///
    /// (One to three short runs each, on a noisy virtual machine.) Below 8 the
    /// wait for a slice is the rule. From 8 on it is the exception: a run now and
    /// then with some requests of 2 ms, as the idle machine has too if it is kept
    /// awake by another process at nice 19. The same holds between High and
    /// Normal: a late High job beside a full queue of Normal ones was done, at
    /// p99 of each of five rounds, 0.06 to 2.5 ms after its call (bench
    /// `late_job`). So the distance from 0 to 16 is cut in half: a lighter High
    /// would leave the I/O lane more, and pass Normal's jobs less surely.
    ///
    /// # Who else is affected
    /// Weights count among the threads of one cgroup (and, with the kernel's
    /// autogroup, of one session). A container or a service of systemd's is a
    /// cgroup of its own: its neighbours on the host neither gain nor lose by
    /// this. But another *process in the same group* that computes at nice 0
    /// gets the cores before the CPU lane does, 36 to 1: give the lane less, or
    /// [`without_nice`](Self::without_nice), if it has to hold its own there.
    ///
    /// The value is raised from that of the thread that made the process's
    /// first lane, to 19 at most: in a process that was itself started at 11 or
    /// more, all priorities weigh the same. A sandbox may refuse to raise it:
    /// then jobs run without, a warning is logged once, and `Debug` of the
    /// handle shows it.
    ///
    /// Neither Normal nor Low may be below the more urgent priorities, defaults
    /// included: to raise High above 16 takes raising the others first.
    /// [`without_nice`](Self::without_nice) sets all three to 0, and later
    /// calls start from there.
    ///
    /// # What it brings with it
    /// - **Threads that a job makes inherit its value**, and can't get rid of
    ///   it. On the rayon backend that includes threads of the I/O runtime's
    ///   blocking pool that `tokio::task::spawn_blocking` (or a DNS lookup of
    ///   Tokio's) makes right in a job: they stay, and serve the I/O lane too,
    ///   until they were idle for 10 s; with steady traffic, for ever. Call it
    ///   through [`spawn_io`](crate::Handle::spawn_io), and they are born where
    ///   they belong.
    /// - **A lock that a job holds** stays held while the job waits for a core.
    ///   Don't let the I/O lane wait for one. twolane's own code does not where
    ///   jobs are submitted, woken and awaited. It has locks that are held for
    ///   moments elsewhere (a lane is built or has shut down, the process's
    ///   default handle is set), and so have Tokio and rayon.
    ///
    /// ```
    /// use twolane::Priority;
    /// let settings = twolane::CpuRuntime::builder().nice(Priority::High, 5).nice(Priority::Normal, 10);
    /// ```
    pub fn nice(mut self, priority: Priority, raise_by: u8) -> Self {
        self.nice[priority.index()] = raise_by;
        self
    }

    /// Leaves the nice value of all threads as it is, so that the CPU lane
    /// competes with the I/O lane, and its priorities with one another, as
    /// equals.
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().without_nice();
    /// ```
    pub fn without_nice(mut self) -> Self {
        self.nice = Default::default();
        self
    }

    /// Whether [`Low`](Priority::Low)'s threads are of the kernel's idle class,
    /// `SCHED_IDLE`, with nice 19 whatever else is set. Default: no. Only on
    /// Linux; elsewhere nothing is set. It needs no privilege.
    ///
    /// A thread that wakes up goes to a core where only such work runs as if
    /// that were idle. By nice values alone, two High threads that wake up
    /// together may queue for one core, for milliseconds, while the other has
    /// Low's work. Beside compactions at Low, flushes at High (with nice 1) had
    /// a p99 of 1.27 times what it is alone with this (1.15 to 1.49), and 1.56
    /// without (1.19 to 1.83); their median went from 1.07 to 1.02. (Six slices
    /// each on 2 cores, Linux 6.18: bench `flush_compact`, without and with its
    /// switch `--without-idle-class`.)
    ///
    /// The price: such a thread weighs a tenth of what Normal's does, and next
    /// to nothing beside the I/O lane or another process at nice 0 (1 to 340).
    /// It starves as long as they want all cores, and whoever waits for a lock
    /// that it holds, be it the allocator's, waits too. Threads that its jobs
    /// make are of that class as well. So it is for work that can wait for a
    /// quiet second, in a process whose I/O lane has them.
    ///
    /// If it is refused (a sandbox may), a warning says so once, and jobs run
    /// at nice 19.
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().idle_class_for_low(true);
    /// ```
    pub fn idle_class_for_low(mut self, idle: bool) -> Self {
        self.idle_class_for_low = idle;
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
    /// that runtime's timers and tasks wait with it. Each job takes a lock and
    /// reads a clock for it, and two more at most every 250 µs; nothing where
    /// there is no such quota. `Debug` of a handle shows the quota.
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().pace_to_quota(false);
    /// ```
    pub fn pace_to_quota(mut self, pace: bool) -> Self {
        self.pace_to_quota = pace;
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
        if self.name.contains('\0') {
            return Err(BuildError::ThreadName { asked: self.name });
        }
        let io = match self.io {
            Some(io) => io,
            None => tokio::runtime::Handle::try_current().map_err(|_| BuildError::NoIoRuntime)?,
        };
        let io = IoLane::watch(io);
        if io.is_gone() {
            return Err(BuildError::IoRuntimeGone);
        }

        let birth_nice = starter::birth_nice().map_err(BuildError::Spawn)?;
        let settings = ThreadSettings {
            backend: self.backend,
            threads,
            name: self.name,
            hooks: self.hooks,
            weights: Priority::ALL.map(|priority| match priority {
                Priority::Low if self.idle_class_for_low => Weight::IDLE,
                _ => Weight::after_raise(birth_nice, self.nice[priority.index()]),
            }),
        };
        let pacer = self.pace_to_quota.then(Pacer::for_this_process).flatten();
        let (orders, mailbox) = mpsc::channel();
        let lane = Lane::new(settings, pacer, io, orders);
        warden::start(lane.clone(), mailbox).map_err(BuildError::Spawn)?;
        // From here on its drop sends the warden and the threads home.
        let cpu = CpuRuntime::of(lane.clone());
        let (reply, started) = mpsc::channel();
        let normal = Level::new(lane, Priority::Normal);
        warden::open(&normal, move |outcome| drop(reply.send(outcome)));
        let outcome = started.recv();
        outcome
            .expect("the opener replies")
            .map_err(BuildError::Spawn)?;
        Ok(cpu)
    }

    fn checked_threads(&self) -> Result<usize, BuildError> {
        let max = sizing::max();
        match self.threads {
            None => sizing::default_threads(),
            Some(asked) if (1..=max).contains(&asked) => Ok(asked),
            Some(asked) => Err(BuildError::Threads { asked, max }),
        }
    }

    fn check_nice(&self) -> Result<(), BuildError> {
        let of = |priority: Priority| (priority, self.nice[priority.index()]);
        for priority in Priority::ALL {
            if of(priority).1 > weight::MAX_NICE {
                let asked = of(priority).1;
                return Err(BuildError::Nice { priority, asked });
            }
        }
        for pair in Priority::ALL.windows(2) {
            let (urgent, patient) = (of(pair[0]), of(pair[1]));
            if urgent.1 > patient.1 {
                return Err(BuildError::NiceOrder { urgent, patient });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("backend", &self.backend)
            .field("threads", &self.threads)
            .field("thread_name", &self.name)
            .field("nice", &self.nice)
            .field("idle_class_for_low", &self.idle_class_for_low)
            .field("pace_to_quota", &self.pace_to_quota)
            .finish_non_exhaustive()
    }
}
