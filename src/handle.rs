//! [`Handle`]: everything that spawns.

use std::fmt;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::mpsc;

use crate::admission;
use crate::backend::{Backend, Threads};
use crate::context;
use crate::error::{Cause, JoinError};
use crate::io::in_context::InIoContext;
use crate::io::lane::IoLaneState;
use crate::io::spawn::{Tailless, spawn_io as spawn_io_with_tail};
use crate::job::{ClosureWork, ContextWork, FutureWork};
use crate::job_context::JobContext;
use crate::lane::Level;
use crate::metrics::Metrics;
use crate::os::weight;
use crate::panics;
use crate::priority::Priority;
use crate::task::Task;
use crate::warden;

/// Spawns on the two lanes of a [`CpuRuntime`](crate::CpuRuntime).
///
/// Cheap to clone, and usable from any thread. It does not keep the lane
/// running: that is the `CpuRuntime`'s to decide.
///
/// | use | for | costs |
/// |---|---|---|
/// | [`spawn_cpu`](Self::spawn_cpu) | a closure that computes | two thread wake-ups, one allocation |
/// | [`spawn_cpu_with`](Self::spawn_cpu_with) | the same, and it asks whether it is still wanted | the same |
/// | [`spawn`](Self::spawn) | a future that computes between its `.await`s | the same, and a box for the future |
/// | [`spawn_io`](Self::spawn_io) | a request, anything with sockets, from inside a job | a hop to the I/O lane and back |
/// | [`in_io_context`](Self::in_io_context) | making I/O objects that others will poll | nothing; no hop |
/// | [`install`](Self::install) | a closure that borrows, from a plain thread | blocks the caller |
///
/// What that comes to, and from what size on a piece of work is worth it, stands
/// below.
///
/// They go to the handle's [`Priority`], which is `Normal` unless
/// [`with_priority`](Self::with_priority) made it.
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let handle = cpu.handle();
/// let text = tokio::spawn(async move { handle.spawn_cpu(|| "done").await.unwrap() });
/// assert_eq!(text.await.unwrap(), "done");
/// # }
/// ```
///
#[doc = include_str!("../docs/cost.md")]
#[derive(Clone)]
pub struct Handle {
    level: Level,
}

impl Handle {
    pub(crate) fn new(level: Level) -> Self {
        Self { level }
    }

    pub(crate) fn level(&self) -> &Level {
        &self.level
    }

    /// Runs a closure on the CPU lane.
    ///
    /// For what computes for 100 µs or more, or slices of a millisecond of what
    /// takes less; what that rests on stands at [`Handle`]. With
    /// [`Backend::Rayon`], `par_iter`, `join` and `scope` inside use the lane's own
    /// threads. A queue is first come first served, and unbounded unless it was
    /// given a [limit](crate::Builder::queue_limit).
    ///
    /// The closure must *compute* what it returns: `spawn_cpu(|| async { .. })`
    /// returns a future that nobody has polled, and would compute wherever you
    /// await it. Give such a future to [`spawn`](Self::spawn). (It is warned
    /// of, once, where `tracing` is on.)
    ///
    /// # Errors
    /// None here. The task says what went wrong: [`JoinError`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let bytes = vec![1_u8; 1 << 20];
    /// let sum = cpu.handle().spawn_cpu(move || bytes.iter().map(|b| u64::from(*b)).sum::<u64>());
    /// assert_eq!(sum.await.unwrap(), 1 << 20);
    /// # }
    /// ```
    pub fn spawn_cpu<F, T>(&self, f: F) -> Task<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        admission::submit(self, ClosureWork::new(f))
    }

    /// As [`spawn_cpu`](Self::spawn_cpu), for a closure that runs long: it is
    /// handed the [`JobContext`], which tells whether the job is still wanted.
    /// Rayon children capture that like any variable. Costs one reference count
    /// more.
    ///
    /// # Errors
    /// As [`spawn_cpu`](Self::spawn_cpu).
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let endless = cpu.handle().spawn_cpu_with(|job| while job.checkpoint().is_ok() {});
    /// drop(endless); // the closure returns soon
    /// # }
    /// ```
    pub fn spawn_cpu_with<F, T>(&self, f: F) -> Task<T>
    where
        F: FnOnce(&JobContext) -> T + Send + 'static,
        T: Send + 'static,
    {
        admission::submit(self, ContextWork::new(f))
    }

    /// Runs a future on the CPU lane: every poll of it is there.
    ///
    /// For futures that compute between their `.await`s. What they do by way
    /// of I/O they should do through [`spawn_io`](Self::spawn_io) or an
    /// adapter; what happens when they don't stands at [`Backend`].
    ///
    /// # Errors
    /// None here. The task says what went wrong: [`JoinError`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let rows = cpu.handle().spawn(async {
    ///     let page = twolane::spawn_io(async { "a,b,c" }).await?; // on the I/O lane
    ///     Ok::<_, twolane::JoinError>(page.split(',').count())    // on the CPU lane
    /// });
    /// assert_eq!(rows.await.unwrap().unwrap(), 3);
    /// # }
    /// ```
    pub fn spawn<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        admission::submit(self, FutureWork::new(future))
    }

    /// Runs a future on the I/O lane, as a task of the Tokio runtime there,
    /// from anywhere: a CPU job, a rayon child of one, a plain thread.
    ///
    /// Sockets, timers and background tasks that it makes belong to that
    /// runtime, whatever the CPU lane is doing. The span and subscriber of the
    /// submitter go with it. Inside, the free functions use this handle.
    ///
    /// # Errors
    /// None here. The task says what went wrong: [`JoinError`]. If the I/O
    /// runtime ends first, that is [`JoinError::is_io_runtime_gone`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let address = cpu.spawn_io(async {
    ///     tokio::net::TcpListener::bind("127.0.0.1:0").await?.local_addr()
    /// });
    /// assert!(address.await.unwrap().is_ok());
    /// # }
    /// ```
    pub fn spawn_io<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn_io_with_tail(self, Tailless { future })
    }

    /// A future that is made, polled and dropped here, inside the I/O
    /// runtime's context: what it opens belongs to the I/O lane, while its own
    /// code runs wherever it is awaited.
    ///
    /// For making a client, a connection or a timer from inside a job on
    /// [`Backend::Runtime`] or from a foreign runtime, without a hop. **Not for
    /// requests**: those are polled by a thread that may be busy, and keep
    /// others waiting meanwhile; [`spawn_io`](Self::spawn_io) is for them.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::builder().backend(twolane::Backend::Runtime).build().unwrap();
    /// let handle = cpu.handle();
    /// let bound = cpu.spawn(async move {
    ///     handle.in_io_context(|| tokio::net::TcpListener::bind("127.0.0.1:0")).await
    /// });
    /// assert!(bound.await.unwrap().is_ok());
    /// # }
    /// ```
    pub fn in_io_context<M, F>(&self, make: M) -> InIoContext<F>
    where
        M: FnOnce() -> F,
        F: Future,
    {
        InIoContext::new(self.io_handle().clone(), make)
    }

    /// Runs a closure that may borrow in the rayon pool, and waits for it.
    ///
    /// For plain threads: the caller sleeps meanwhile, so never in async code.
    /// It is the pool of this handle's [`Priority`]; inside a job of that same
    /// one it runs right here. It goes into rayon's own queue, not
    /// the lane's, and is no job: no task, no cancellation.
    ///
    /// # Errors
    /// [`JoinError::is_panic`] if `f` panicked; [`JoinError::is_shutdown`]
    /// after a shutdown; [`JoinError::is_io_runtime_gone`];
    /// [`JoinError::is_out_of_threads`] if this is the first use of the
    /// priority.
    ///
    /// # Panics
    /// With [`Backend::Runtime`], which has no such pool. In an
    /// `on_thread_start` hook of the same lane.
    ///
    /// ```
    /// use rayon::prelude::*;
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let numbers = vec![1, 2, 3];
    /// let sum: i32 = cpu.install(|| numbers.par_iter().sum()).unwrap();
    /// assert_eq!(sum, 6);
    /// ```
    #[track_caller]
    pub fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> Result<R, JoinError> {
        if self.backend() == Backend::Runtime {
            panic!(
                "`install` needs a rayon pool, and this CpuRuntime has `Backend::Runtime`: \
                 build it with `Backend::Rayon`, or use `spawn_cpu(..).wait()`"
            );
        }
        if let Some(cause) = self.level.lane().refusal() {
            return Err(cause.into());
        }
        if context::is_starting_worker_of(self.level.lane()) {
            panic!(
                "`install` in an `on_thread_start` hook: it may wait for the very thread that \
                 runs the hook. Spawn a job there, and don't wait for it"
            );
        }
        if self.level.threads().is_none() {
            // Not by way of a job: it would wait for its turn, and a caller
            // that is a worker of another priority would not work meanwhile.
            let (reply, opened) = mpsc::channel();
            warden::open(&self.level, move |outcome| drop(reply.send(outcome)));
            if !matches!(opened.recv(), Ok(Ok(()))) {
                return Err(Cause::NoThreads.into());
            }
        }
        match self.level.threads() {
            Some(Threads::Rayon(pool)) => pool
                .install(|| panics::catch(f))
                .ok_or(Cause::ShutDown)?
                .map_err(JoinError::panicked),
            _ => Err(Cause::ShutDown.into()),
        }
    }

    /// The same lane at another [`Priority`]: what is spawned by the handle
    /// that this returns runs on that priority's threads. They start with the
    /// first job.
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
        Self::new(Level::new(self.level.lane().clone(), priority))
    }

    /// At which priority this handle spawns.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.handle().priority(), twolane::Priority::Normal);
    /// ```
    pub fn priority(&self) -> Priority {
        self.level.priority()
    }

    /// How many threads the CPU lane has, at each priority that is in use.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::builder().threads(3).build().unwrap();
    /// assert_eq!(cpu.handle().threads(), 3);
    /// ```
    pub fn threads(&self) -> usize {
        self.level.lane().settings.threads
    }

    /// What runs the CPU lane's jobs.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.handle().backend(), twolane::Backend::Rayon);
    /// ```
    pub fn backend(&self) -> Backend {
        self.level.lane().settings.backend
    }

    /// The Tokio runtime that is the I/O lane.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.handle().io_handle().id(), tokio::runtime::Handle::current().id());
    /// # }
    /// ```
    pub fn io_handle(&self) -> &tokio::runtime::Handle {
        self.level.lane().io.handle()
    }

    /// Whether the I/O lane has been seen to run, and is still there.
    ///
    /// ```
    /// let io = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// let cpu = twolane::CpuRuntime::builder().io_handle(io.handle().clone()).build().unwrap();
    /// let handle = cpu.handle();
    /// assert_eq!(handle.io_lane_state(), twolane::IoLaneState::NotDriven);
    /// io.block_on(async { tokio::task::yield_now().await });
    /// assert_eq!(handle.io_lane_state(), twolane::IoLaneState::Driven);
    /// drop(io);
    /// assert_eq!(handle.io_lane_state(), twolane::IoLaneState::Gone);
    /// ```
    pub fn io_lane_state(&self) -> IoLaneState {
        self.level.lane().io.state()
    }

    /// What became of the jobs of this handle's [priority](Self::with_priority). It
    /// takes microseconds, and no other thread waits for it.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::Priority;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// for priority in [Priority::High, Priority::Normal, Priority::Low] {
    ///     println!("{priority:?}: {:?}", cpu.handle().with_priority(priority).metrics());
    /// }
    /// # }
    /// ```
    pub fn metrics(&self) -> Metrics {
        self.level.counters().read()
    }
}

// As Tokio's own: no panic passes through a lane's code half-way, since every
// call of foreign code in it is caught.
impl UnwindSafe for Handle {}
impl RefUnwindSafe for Handle {}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lane = self.level.lane();
        let nice: Vec<_> = lane
            .started()
            .map(|p| (p, lane.settings.weights[p.index()].nice))
            .collect();
        let mut handle = f.debug_struct("Handle");
        handle
            .field("priority", &self.priority())
            .field("backend", &self.backend())
            .field("threads", &self.threads())
            .field("running", &lane.running())
            .field("paced_to_cores", &lane.paced_to_cores())
            .field("closed", &lane.is_closed())
            .field("io_lane", &self.io_lane_state());
        match lane.nice_refused() {
            Some(refused) => handle.field("nice_refused", refused),
            None if weight::SUPPORTED => handle.field("nice", &nice),
            None => handle.field("nice", &"not on this platform"),
        };
        handle.finish()
    }
}
