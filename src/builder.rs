//! Settings, checked, into a [`CpuRuntime`].

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use crate::backend::{Backend as Threads, ThreadSettings, rayon, runtime};
use crate::error::BuildError;
use crate::io::lane::IoLane;
use crate::lane::Lane;
use crate::panics;
use crate::runtime::CpuRuntime;
use crate::warden;

/// What runs the CPU lane's jobs. The contract is the same on both, but for
/// these:
///
/// | | `Rayon` | `Runtime` |
/// |---|---|---|
/// | `par_iter`, `join`, `scope` inside a job | on the lane's own threads | on rayon's global pool |
/// | `tokio::spawn` inside a job | **on the I/O lane**: use [`spawn`](crate::Handle::spawn) for what computes | on the CPU lane |
/// | a socket opened directly inside a job | belongs to the I/O lane | panics (see below) |
/// | a Tokio timer inside a job | the I/O lane's | the CPU runtime's own |
/// | Tokio's cooperative budget | none: a future that is always ready does not yield by itself, and does not see its cancel | as in any Tokio task |
/// | [`Handle::install`](crate::Handle::install) | runs in the pool | panics, with the remedy |
/// | [`current_job`](crate::current_job) costs | microseconds | nanoseconds |
///
/// The panic of a socket in a job on `Backend::Runtime` reads *"A Tokio 1.x
/// context was found, but IO is disabled"*. It means: this future does I/O
/// where none is done. Give it to [`spawn_io`](crate::Handle::spawn_io), or
/// make and poll it inside [`in_io_context`](crate::Handle::in_io_context).
///
/// ```
/// # let io = tokio::runtime::Runtime::new().unwrap();
/// # let _io = io.enter();
/// let cpu = twolane::CpuRuntime::builder().backend(twolane::Backend::Runtime).build().unwrap();
/// assert_eq!(cpu.handle().backend(), twolane::Backend::Runtime);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// A rayon pool of the lane's own. The default.
    #[default]
    Rayon,
    /// A dedicated Tokio runtime with timers and without an I/O driver, for
    /// engines whose futures call `tokio::spawn` on CPU-heavy parts of
    /// themselves (DataFusion).
    Runtime,
}

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
    hooks: ThreadHooks,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            backend: Backend::default(),
            threads: None,
            name: "twolane".to_owned(),
            io: None,
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

    /// How many threads compute. Default:
    /// [`std::thread::available_parallelism`], which honours cpusets and
    /// cgroup quotas; 1 where it can't tell. One thread is enough for
    /// everything to work.
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().threads(1);
    /// ```
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// What the threads are called: `NAME-0`, `NAME-1`, ... and `NAME-warden`.
    /// Default: `twolane`. Linux shows the first 15 bytes.
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

    /// Runs on each thread of the lane when it starts, after twolane's own
    /// preparations and before any job. May be called more than once: all run,
    /// in that order. A panic in it is logged and ends there.
    ///
    /// With [`Backend::Runtime`] threads of that runtime's blocking pool run
    /// it too.
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().on_thread_start(|| println!("hello"));
    /// ```
    pub fn on_thread_start(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.start.push(Arc::new(hook));
        self
    }

    /// Runs on each thread of the lane when it ends; else as
    /// [`on_thread_start`](Self::on_thread_start).
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().on_thread_stop(|| println!("bye"));
    /// ```
    pub fn on_thread_stop(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.stop.push(Arc::new(hook));
        self
    }

    /// Starts the threads, and returns when they are ready (well below a
    /// millisecond, unless a start hook takes longer).
    ///
    /// # Errors
    /// [`BuildError`]: no I/O runtime, one that is gone, a number of threads
    /// or a name that can't be, or no threads to be had.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let err = twolane::CpuRuntime::builder().threads(0).build().unwrap_err();
    /// assert!(err.to_string().starts_with("Builder::threads(0): "));
    /// ```
    pub fn build(self) -> Result<CpuRuntime, BuildError> {
        let threads = self.checked_threads()?;
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

        let (orders, mailbox) = mpsc::channel();
        let lane = Lane::new(threads, io, orders);
        warden::start(lane.clone(), mailbox, &self.name).map_err(BuildError::Spawn)?;
        // From here on its drop sends the warden and the threads home.
        let cpu = CpuRuntime::of(lane.clone());
        let settings = ThreadSettings {
            threads,
            name: self.name,
            hooks: self.hooks,
        };
        let backend = match self.backend {
            Backend::Rayon => rayon::Pool::start(&lane, settings).map(Threads::Rayon),
            Backend::Runtime => runtime::CpuTokio::start(&lane, settings).map(Threads::Runtime),
        };
        lane.set_backend(backend.map_err(BuildError::Spawn)?);
        Ok(cpu)
    }

    fn checked_threads(&self) -> Result<usize, BuildError> {
        let max = rayon_core::max_num_threads();
        match self.threads {
            None => Ok(thread::available_parallelism()
                .map_or(1, usize::from)
                .min(max)),
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
            .finish_non_exhaustive()
    }
}

type Hook = Arc<dyn Fn() + Send + Sync>;

/// What the user wants run on the lane's threads.
#[derive(Clone, Default)]
pub(crate) struct ThreadHooks {
    start: Vec<Hook>,
    stop: Vec<Hook>,
}

impl ThreadHooks {
    pub(crate) fn started(&self) {
        for hook in &self.start {
            panics::run_hook("an `on_thread_start` hook", || hook());
        }
    }

    pub(crate) fn stopping(&self) {
        for hook in &self.stop {
            panics::run_hook("an `on_thread_stop` hook", || hook());
        }
    }
}
