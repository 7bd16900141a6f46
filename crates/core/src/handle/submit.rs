//! Methods of [`Handle`] that submit: by [`Submit`] (`task/work.rs`), whose way in is in
//! `admission/mod.rs`.

use std::time::Duration;

use super::Handle;
use crate::bridge::spawn_io::spawn_io;
use crate::error::JoinError;
use crate::pace::Step;
use crate::panics;
use crate::task::{
    Cancelled, FutureWork, JobContext, Submit, Task, assert_may_block, thread_number,
};

/// # Submit
impl Handle {
    /// Runs a closure on the CPU lane. (For a future: [`spawn`](Self::spawn).)
    ///
    /// Use it for work that computes for 100 µs or more. Batch smaller work into slices of about
    /// 1 ms; see `twolane::guide::cost`. rayon's `par_iter`, `join` and `scope` inside the closure
    /// use the lane's own threads. The queue is unbounded unless it has a
    /// [limit](crate::Builder::queue_limit), and FIFO but for
    /// [short jobs](crate::Builder::short_jobs_first), which pass long ones.
    ///
    /// **Dropping the task cancels the closure**, whereas that of `spawn_blocking` runs on:
    /// `let _ = cpu.spawn_cpu(..)` does nothing. [`detach`](Task::detach) the task of a closure
    /// that should run without an awaiter. (With the feature `tracing`, the lane logs the first
    /// drop before a closure began, for each call site.)
    ///
    /// The closure must *compute* what it returns. `spawn_cpu(|| async { .. })` returns a
    /// future that no thread has polled; it would compute where you await it. Pass such a
    /// future to [`spawn`](Self::spawn). (With the feature `tracing`, the lane logs a
    /// warning the first time that a closure returns a future.)
    ///
    /// # Errors
    ///
    /// None here. The task returns the [`JoinError`](crate::JoinError).
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
        self.submitter.closure(f)
    }

    /// Runs a closure on the CPU lane, and passes it a [`JobContext`]: the form for a closure
    /// that runs for more than a few milliseconds.
    ///
    /// As [`spawn_cpu`](Self::spawn_cpu), but the closure asks
    /// [`job.checkpoint()?`](JobContext::checkpoint) now and then, and returns its output in
    /// `Ok`. A checkpoint fails once the task was dropped or aborted, the deadline has passed,
    /// or the lane shuts down. The closure then returns early, and its task returns the
    /// [`JoinError`](crate::JoinError) of that reason. Rayon children capture the context like
    /// any variable. It costs one more reference count.
    ///
    /// For an error of the closure's own, see the second example.
    ///
    /// # Errors
    ///
    /// None here. The task returns the error.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), twolane::JoinError> {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let primes = cpu.spawn_cpu_with(|job| {
    ///     let mut primes = Vec::new();
    ///     for n in 2..1_000_u32 {
    ///         job.checkpoint()?;
    ///         if primes.iter().all(|prime| n % prime != 0) {
    ///             primes.push(n);
    ///         }
    ///     }
    ///     Ok(primes)
    /// });
    /// assert_eq!(primes.await?.len(), 168);
    /// # Ok(()) }
    /// ```
    ///
    /// With an error of its own, write a function: its error is made of a [`Cancelled`], as
    /// `Box<dyn Error + Send + Sync>`, `anyhow::Error` and any `#[from]` are. So `?` works on both.
    /// The output of the job is then a `Result`, and the second checkpoint tells one error from the
    /// other:
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// use std::error::Error;
    /// use twolane::JobContext;
    ///
    /// fn sum(job: &JobContext, lines: &[&str]) -> Result<i32, Box<dyn Error + Send + Sync>> {
    ///     let mut sum = 0;
    ///     for line in lines {
    ///         job.checkpoint()?;
    ///         sum += line.parse::<i32>()?;
    ///     }
    ///     Ok(sum)
    /// }
    /// let cpu = twolane::CpuRuntime::new()?;
    /// let task = cpu.spawn_cpu_with(|job| {
    ///     let sum = sum(job, &["1", "2", "39"]);
    ///     if sum.is_err() {
    ///         job.checkpoint()?; // it was cancelled: its task says so, and the counters
    ///     }
    ///     Ok(sum)
    /// });
    /// assert_eq!(task.await??, 42);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn spawn_cpu_with<F, T>(&self, f: F) -> Task<T>
    where
        F: FnOnce(&JobContext) -> Result<T, Cancelled> + Send + 'static,
        T: Send + 'static,
    {
        self.submitter.closure_with(f)
    }

    /// Runs a future on the CPU lane, which polls it there each time. (For a closure:
    /// [`spawn_cpu`](Self::spawn_cpu).)
    ///
    /// As in Tokio, `spawn` takes a future. Use it for futures that compute between their
    /// `.await`s. Their I/O should go through [`spawn_io`](Self::spawn_io), `twolane::IoOwned` or
    /// an adapter (`twolane::guide::clients`). A future that holds a connection of a pool while it
    /// computes, or waits for one in the pool's queue, keeps it from all others.
    ///
    /// **`tokio::spawn` inside of it starts a task of the I/O lane**, also one that computes. Use this
    /// method there, by [`Handle::current`], or for a library that spawns
    /// [`in_cpu_context`](crate::in_cpu_context).
    ///
    /// # Errors
    ///
    /// None here. The task returns the [`JoinError`](crate::JoinError).
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
        self.submitter.submit(FutureWork::new(future))
    }

    /// Runs a future on the I/O lane, as a task of the Tokio runtime there.
    ///
    /// It can be called from anywhere: a CPU job, a rayon child of one, a plain thread.
    /// Sockets, timers and background tasks that the future creates belong to the I/O
    /// runtime. They make progress whatever the CPU lane does. The future runs in the
    /// span and with the subscriber of the submitter. Inside it, the free functions use
    /// this handle.
    ///
    /// # Errors
    ///
    /// None here. The task returns the [`JoinError`](crate::JoinError). If the I/O
    /// runtime ends first, that is
    /// [`JoinErrorKind::IoRuntimeGone`](crate::JoinErrorKind::IoRuntimeGone). After a shutdown
    /// of the CPU lane it is [`JoinErrorKind::Shutdown`](crate::JoinErrorKind::Shutdown);
    /// [`io`](Self::io)
    /// spawns then, too.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let address = cpu.handle().spawn_io(async {
    ///     tokio::net::TcpListener::bind("127.0.0.1:0").await?.local_addr()
    /// });
    /// assert!(address.await.unwrap().is_ok());
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn_io<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match self.submitter.check_open() {
            Err(closed) => Task::refused(closed.into()),
            Ok(()) => spawn_io(&self.submitter, future),
        }
    }

    /// Runs a closure in the rayon pool, and blocks until it returns: rayon's `ThreadPool::install`
    /// for the lane's own pool, which is not handed out. A library that uses rayon without a pool
    /// of its own computes there in the closure.
    ///
    /// The closure may borrow. Use it on plain threads only, never in async code: the
    /// caller blocks. The pool is that of this handle's [`Priority`](crate::Priority).
    /// Inside a job of the same priority the closure runs on the calling thread. Otherwise
    /// it goes into rayon's own queue, not into the lane's. It is no job: it has no task
    /// and cannot be cancelled.
    ///
    /// # Errors
    ///
    /// [`JoinError::is_panic`] if `f` panicked;
    /// [`JoinErrorKind::Shutdown`](crate::JoinErrorKind::Shutdown) after a
    /// shutdown; [`JoinErrorKind::IoRuntimeGone`](crate::JoinErrorKind::IoRuntimeGone);
    /// [`JoinErrorKind::NoThreads`](crate::JoinErrorKind::NoThreads): the first call for a priority that
    /// is not in use starts its threads, and waits for their start hooks.
    ///
    /// # Panics
    ///
    /// In an `on_thread_start` hook of the same lane, and on a thread that polls tasks of a
    /// Tokio runtime, unless it runs a job.
    ///
    /// # Examples
    ///
    /// ```
    /// use rayon::prelude::*;
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let numbers = vec![1, 2, 3];
    /// let sum: i32 = cpu.handle().install(|| numbers.par_iter().sum()).unwrap();
    /// assert_eq!(sum, 6);
    /// ```
    #[track_caller]
    pub fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> Result<R, JoinError> {
        self.submitter.check_open()?;
        assert_may_block();
        let workers = self.submitter.level().started()?;
        // Counted and timed as a job.
        let sites = &self.submitter.level().counters.sites;
        let site = self.submitter.site_or_caller();
        let nth = sites.submitted(site, thread_number());
        let (mut f, mut result) = (Some(f), None);
        workers.install(&mut || {
            let sample = sites.sample(site, nth, false);
            let sample = sample.map(|sample| (sample, Step::begin(Duration::ZERO)));
            result = f.take().map(panics::catch);
            if let Some((sample, step)) = sample {
                sample.add(&step.end());
            }
        });
        // There is none if the pool is shut down.
        let result = result.ok_or_else(|| self.submitter.levels.lane.reason_once_closed())?;
        result.map_err(JoinError::of_unwinding)
    }
}
