//! Methods of [`Handle`] for work on the CPU lane.

use std::future::Future;

use super::Handle;
use crate::admission;
use crate::task::{Cancelled, FutureWork, JobContext, Task, closure, closure_with};

impl Handle {
    /// Runs a closure on the CPU lane. (For a future: [`spawn`](Self::spawn).)
    ///
    /// Use it for work that computes for 100 µs or more. Batch smaller work into slices
    /// of about 1 ms; see `twolane::guide::cost`. With [`Backend::Rayon`](crate::Backend::Rayon), `par_iter`,
    /// `join` and `scope` inside the closure use the lane's own threads. The queue is
    /// unbounded unless it has a [limit](crate::Builder::queue_limit), and FIFO but for
    /// [short jobs](crate::Builder::short_jobs_first), which pass long ones.
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
        admission::submit(self.level(), self.deadline, closure(f))
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
    /// A closure with an error of its own returns that as its output: see the second example.
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
    /// With an error of the closure's own, the output is a `Result`:
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::num::ParseIntError;
    /// let cpu = twolane::CpuRuntime::new()?;
    /// let sum = cpu.spawn_cpu_with(|job| {
    ///     let mut sum = 0;
    ///     for line in ["1", "2", "39"] {
    ///         job.checkpoint()?;
    ///         match line.parse::<i32>() {
    ///             Ok(n) => sum += n,
    ///             Err(error) => return Ok(Err(error)),
    ///         }
    ///     }
    ///     Ok(Ok::<_, ParseIntError>(sum))
    /// });
    /// assert_eq!(sum.await??, 42);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn spawn_cpu_with<F, T>(&self, f: F) -> Task<T>
    where
        F: FnOnce(&JobContext) -> Result<T, Cancelled> + Send + 'static,
        T: Send + 'static,
    {
        admission::submit(self.level(), self.deadline, closure_with(f))
    }

    /// Runs a future on the CPU lane, which polls it there each time. (For a closure:
    /// [`spawn_cpu`](Self::spawn_cpu).)
    ///
    /// As in Tokio, `spawn` takes a future. Use it for futures that compute between their `.await`s. Their I/O should go
    /// through [`spawn_io`](Self::spawn_io), `twolane::IoOwned` or an adapter
    /// (`twolane::guide::clients`). A future that holds a connection of a pool
    /// while it computes, or waits for one in the pool's queue, keeps it from all others.
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
        admission::submit(self.level(), self.deadline, FutureWork::new(future))
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
    /// cpu.handle().drop_on_cpu(index);
    /// # }
    /// ```
    #[track_caller]
    pub fn drop_on_cpu<T: Send + 'static>(&self, value: T) {
        admission::drop_on_lane(self.level(), value);
    }
}
