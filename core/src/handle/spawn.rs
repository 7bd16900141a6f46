//! Methods of [`Handle`] for work on the CPU lane.

use std::future::Future;

use super::Handle;
use crate::admission::{self, Admit, Permit, Rejected};
use crate::backend::Backend;
use crate::error::JoinError;
use crate::panics;
use crate::task::{FutureWork, JobContext, Task, closure, closure_with};

impl Handle {
    /// Runs a closure on the CPU lane.
    ///
    /// Use it for work that computes for 100 µs or more. Batch smaller work into slices
    /// of about 1 ms; see `twolane::guide::cost`. With [`Backend::Rayon`], `par_iter`,
    /// `join` and `scope` inside the closure use the lane's own threads. The queue is
    /// FIFO, and unbounded unless it has a [limit](crate::Builder::queue_limit).
    ///
    /// The closure must *compute* what it returns. `spawn_cpu(|| async { .. })` returns a
    /// future that no thread has polled; it would compute where you await it. Pass such a
    /// future to [`spawn`](Self::spawn). (With the feature `tracing`, the lane logs a
    /// warning the first time that a closure returns a future.)
    ///
    /// # Errors
    ///
    /// None here. The task returns the [`JoinError`].
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let bytes = vec![1_u8; 1 << 20];
    /// let sum = cpu.handle().spawn_cpu(move || bytes.iter().map(|b| u64::from(*b)).sum::<u64>());
    /// assert_eq!(sum.await.unwrap(), 1 << 20);
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn_cpu<F, T>(&self, f: F) -> Task<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        admission::submit(self.level(), closure(f))
    }

    /// Runs a closure on the CPU lane, and passes it a [`JobContext`].
    ///
    /// As [`spawn_cpu`](Self::spawn_cpu), for a closure that runs long: the context tells
    /// whether the job has been cancelled. Rayon children can capture it like any
    /// variable. It costs one more reference count.
    ///
    /// # Errors
    ///
    /// As [`spawn_cpu`](Self::spawn_cpu).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let endless = cpu.handle().spawn_cpu_with(|job| while job.checkpoint().is_ok() {});
    /// drop(endless); // the closure returns soon
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn_cpu_with<F, T>(&self, f: F) -> Task<T>
    where
        F: FnOnce(&JobContext) -> T + Send + 'static,
        T: Send + 'static,
    {
        admission::submit(self.level(), closure_with(f))
    }

    /// Runs a future on the CPU lane, which polls it there each time.
    ///
    /// Use it for futures that compute between their `.await`s. Their I/O should go
    /// through [`spawn_io`](Self::spawn_io), `twolane::OnIo` or an adapter
    /// (`twolane::guide::clients`). A future that holds a connection of a pool
    /// while it computes, or waits for one in the pool's queue, keeps it from all others.
    ///
    /// # Errors
    ///
    /// None here. The task returns the [`JoinError`].
    ///
    /// # Examples
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
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        admission::submit(self.level(), FutureWork::new(future))
    }

    /// Runs a closure on the CPU lane, or returns it if the lane does not accept the job.
    ///
    /// As [`spawn_cpu`](Self::spawn_cpu). The caller can run a returned closure here,
    /// later, elsewhere, or not at all.
    ///
    /// # Errors
    ///
    /// [`Rejected`] if the queue has a [limit](crate::Builder::queue_limit) and is full,
    /// or other submitters wait for a permit. Also if the lane accepts no jobs at all.
    ///
    /// # Examples
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
    #[track_caller]
    pub fn try_spawn_cpu<F, T>(&self, f: F) -> Result<Task<T>, Rejected<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        admission::try_submit(self.level(), f, closure)
    }

    /// Runs a future on the CPU lane, or returns it if the lane does not accept the job.
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Errors
    ///
    /// As [`try_spawn_cpu`](Self::try_spawn_cpu).
    ///
    /// # Examples
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
    #[track_caller]
    pub fn try_spawn<F>(&self, future: F) -> Result<Task<F::Output>, Rejected<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        admission::try_submit(self.level(), future, FutureWork::new)
    }

    /// Drops a value on the CPU lane, by a job of its own.
    ///
    /// To free a large map or tree takes milliseconds: too long for a thread of the I/O lane.
    /// On a thread of this lane, the value is dropped there and then. A panic of the destructor
    /// goes to the log. It needs no permit, and works after a shutdown too: the shutdown then
    /// drops the value, on a thread of its own; and the calling thread, once the lane has ended.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let index: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
    /// cpu.drop_on_cpu(index);
    /// # }
    /// ```
    #[track_caller]
    pub fn drop_on_cpu<T: Send + 'static>(&self, value: T) {
        admission::drop_on_lane(self.level(), value);
    }

    /// Waits for a permit of the queue: backpressure.
    ///
    /// The future resolves to a [`Permit`], which spawns. It resolves at once if the queue
    /// has no [limit](crate::Builder::queue_limit), and inside a job, which needs
    /// none. Waiters are served in FIFO order, from their first poll on.
    ///
    /// On a plain thread, use [`Admit::wait`]. To limit the wait, put Tokio's `timeout_at`
    /// around the future.
    ///
    /// # Errors
    ///
    /// [`JoinError::is_shutdown`], also if the shutdown comes during the wait;
    /// [`JoinError::is_io_runtime_gone`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up its turn and loses nothing else. A permit that was
    /// already assigned to it goes to the next waiter.
    ///
    /// # Examples
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

    /// Returns a permit of the queue if one is free now.
    ///
    /// Use it to learn that the queue is full before you create the closure and its data.
    ///
    /// # Errors
    ///
    /// [`JoinError::is_queue_full`], also if other submitters wait for a permit;
    /// [`JoinError::is_shutdown`]; [`JoinError::is_io_runtime_gone`].
    ///
    /// # Examples
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

    /// Runs a closure in the rayon pool, and blocks until it returns.
    ///
    /// The closure may borrow. Use it on plain threads only, never in async code: the
    /// caller blocks. The pool is that of this handle's [`Priority`](crate::Priority).
    /// Inside a job of the same priority the closure runs on the calling thread. Otherwise
    /// it goes into rayon's own queue, not into the lane's. It is no job: it has no task
    /// and cannot be cancelled.
    ///
    /// # Errors
    ///
    /// [`JoinError::is_panic`] if `f` panicked; [`JoinError::is_shutdown`] after a
    /// shutdown; [`JoinError::is_io_runtime_gone`].
    ///
    /// # Panics
    ///
    /// If the backend is [`Backend::Runtime`], which has no rayon pool. Also in an
    /// `on_thread_start` hook of the same lane.
    ///
    /// # Examples
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
        if level.workers().is_none() {
            panic!(
                "`install` in an `on_thread_start` hook: it may wait for the very thread that \
                 runs the hook. Spawn a job there, and don't wait for it"
            );
        }
        let level = &level.at_caller();
        let queued = level.installs();
        let (mut f, mut result) = (Some(f), None);
        let mut run = || {
            level.timed(queued, || result = f.take().map(panics::catch));
        };
        if level
            .workers()
            .is_some_and(|workers| workers.install(&mut run))
        {
            let result = result.expect("an installed closure runs once");
            result.map_err(JoinError::of_unwinding)
        } else {
            Err(level.lane().reason_of_close().into())
        }
    }
}
