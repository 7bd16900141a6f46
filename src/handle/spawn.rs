//! What runs on the CPU lane.

use std::future::Future;
use std::sync::mpsc;

use super::Handle;
use crate::admission::{self, Admit, Permit, Rejected};
use crate::backend::Backend;
use crate::error::{CloseReason, JoinError};
use crate::lane::{control, thread};
use crate::panics;
use crate::task::{ClosureWork, ContextWork, FutureWork, JobContext, Task};

impl Handle {
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
        admission::submit(self.level(), ClosureWork::new(f))
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
        admission::submit(self.level(), ContextWork::new(f))
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
        admission::submit(self.level(), FutureWork::new(future))
    }

    /// As [`spawn_cpu`](Self::spawn_cpu), and hands the closure back if the job is
    /// not taken on: to be run here, later, elsewhere, or not at all.
    ///
    /// # Errors
    /// [`Rejected`]: the queue has a [limit](crate::Builder::queue_limit) and is
    /// full, or others wait for a permit; or the lane takes on nothing at all.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// use twolane::{CpuRuntime, Priority};
    /// let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, 1).build().unwrap();
    /// let (release, wait) = std::sync::mpsc::channel::<()>();
    /// let first = cpu.handle().try_spawn_cpu(move || wait.recv()).unwrap();
    /// let rejected = cpu.handle().try_spawn_cpu(|| 6 * 7).unwrap_err();
    /// assert!(rejected.cause().is_queue_full());
    /// let closure = rejected.into_inner();
    /// assert_eq!(closure(), 42);
    /// drop(release);
    /// # first.wait().unwrap().unwrap_err();
    /// ```
    pub fn try_spawn_cpu<F, T>(&self, f: F) -> Result<Task<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        admission::try_submit(self.level(), f, ClosureWork::new)
    }

    /// As [`spawn`](Self::spawn), and hands the future back if the job is not
    /// taken on.
    ///
    /// # Errors
    /// As [`try_spawn_cpu`](Self::try_spawn_cpu).
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// cpu.shutdown().await;
    /// let rejected = cpu.handle().try_spawn(async { 42 }).unwrap_err();
    /// assert!(rejected.cause().is_shutdown());
    /// assert_eq!(rejected.into_inner().await, 42);
    /// # }
    /// ```
    pub fn try_spawn<F>(&self, future: F) -> Result<Task<F::Output>, Rejected<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        admission::try_submit(self.level(), future, FutureWork::new)
    }

    /// Waits for a permit of the queue: backpressure. At once where it has no
    /// [limit](crate::Builder::queue_limit), and inside a job, which has one
    /// already.
    ///
    /// Waiters are served in FIFO order, from their first poll on. The future
    /// resolves to a [`Permit`], which spawns. On a plain thread: [`Admit::wait`]. To
    /// wait no longer than until some time, put Tokio's `timeout_at` around it.
    ///
    /// # Errors
    /// [`JoinError::is_shutdown`], also if that comes while it waits;
    /// [`JoinError::is_io_runtime_gone`].
    ///
    /// # Cancel safety
    /// Dropping it gives up its turn, and loses nothing else: a permit that was
    /// given to it meanwhile goes to the next waiter.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), twolane::JoinError> {
    /// use twolane::{CpuRuntime, Priority};
    /// let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, 8).build().unwrap();
    /// let mut tasks = Vec::new();
    /// for n in 0..100_u64 {
    ///     // Reads no more of its input than the lane can take.
    ///     tasks.push(cpu.handle().admit().await?.spawn_cpu(move || n * n));
    /// }
    /// # for (n, task) in (0..).zip(tasks) { assert_eq!(task.await?, n * n); }
    /// # Ok(()) }
    /// ```
    pub fn admit(&self) -> Admit {
        Admit::new(self.level().clone())
    }

    /// A permit of the queue, if there is one now: before there is a closure, or
    /// anything else that its job needs.
    ///
    /// # Errors
    /// [`JoinError::is_queue_full`], also if others wait for a permit;
    /// [`JoinError::is_shutdown`], [`JoinError::is_io_runtime_gone`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let answer = match cpu.handle().try_admit() {
    ///     Ok(permit) => permit.spawn_cpu(|| "computed").await.unwrap(),
    ///     Err(full) => { eprintln!("{full}"); "503" }
    /// };
    /// # assert_eq!(answer, "computed");
    /// # }
    /// ```
    pub fn try_admit(&self) -> Result<Permit, JoinError> {
        Permit::try_new(self.level())
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
        let level = self.level();
        if let Some(cause) = level.lane().close_reason() {
            return Err(cause.into());
        }
        if thread::is_starting_worker_of(level.lane()) {
            panic!(
                "`install` in an `on_thread_start` hook: it may wait for the very thread that \
                 runs the hook. Spawn a job there, and don't wait for it"
            );
        }
        if level.workers().is_none() {
            // Not by way of a job: it would wait for its turn, and a caller
            // that is a worker of another priority would not work meanwhile.
            let (reply, opened) = mpsc::channel();
            control::start_workers(level, move |outcome| drop(reply.send(outcome)));
            if !matches!(opened.recv(), Ok(Ok(()))) {
                return Err(CloseReason::NoThreads.into());
            }
        }
        let (mut f, mut result) = (Some(f), None);
        let mut run = || result = f.take().map(panics::catch);
        if level
            .workers()
            .is_some_and(|workers| workers.install(&mut run))
        {
            let result = result.expect("an installed closure runs once");
            result.map_err(JoinError::panicked)
        } else {
            Err(CloseReason::ShutDown.into())
        }
    }
}
