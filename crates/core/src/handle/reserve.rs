//! Methods of [`Handle`] that wait for a permit of the queue before there is a job.

use super::Handle;
use crate::admission::{Permit, Reserve};
use crate::error::JoinError;

/// # Reserve
impl Handle {
    /// Waits for a permit of the queue: backpressure.
    ///
    /// The future resolves to a [`Permit`], which spawns. It resolves at once if the queue
    /// has no [limit](crate::Builder::queue_limit), and inside a job, which needs
    /// none. Waiters are served in FIFO order, from their first poll on. With a
    /// [limit in time](crate::Builder::max_wait), as many permits as there are threads are given
    /// before their jobs are submitted: submit soon.
    ///
    /// On a plain thread, use [`Reserve::wait`]. To limit the wait, put Tokio's `timeout_at`
    /// around the future.
    ///
    /// # Errors
    ///
    /// [`JoinErrorKind::Shutdown`](crate::JoinErrorKind::Shutdown), also if the shutdown comes
    /// during the wait;
    /// [`JoinErrorKind::IoRuntimeGone`](crate::JoinErrorKind::IoRuntimeGone). With a
    /// [key](Self::with_key): [`JoinErrorKind::KeyFull`](crate::JoinErrorKind::KeyFull), and
    /// [`JoinErrorKind::QueueFull`](crate::JoinErrorKind::QueueFull) of a `max_wait`.
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
    ///     tasks.push(cpu.handle().reserve().await?.spawn_cpu(move || n * n));
    /// }
    /// # for (n, task) in (0..).zip(tasks) { assert_eq!(task.await?, n * n); }
    /// # Ok(()) }
    /// ```
    pub fn reserve(&self) -> Reserve {
        Reserve::new(self.submitter.clone())
    }

    /// Returns a permit of the queue if one is free now.
    ///
    /// Use it to learn that the queue is full before you create the closure and its data.
    ///
    /// # Errors
    ///
    /// [`JoinErrorKind::QueueFull`](crate::JoinErrorKind::QueueFull), also if other submitters wait
    /// for a permit of a [`queue_limit`](crate::Builder::queue_limit);
    /// [`JoinErrorKind::KeyFull`](crate::JoinErrorKind::KeyFull), with a [key](Self::with_key);
    /// [`JoinErrorKind::Shutdown`](crate::JoinErrorKind::Shutdown);
    /// [`JoinErrorKind::IoRuntimeGone`](crate::JoinErrorKind::IoRuntimeGone).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let answer = match cpu.handle().try_reserve() {
    ///     Ok(permit) => permit.spawn_cpu(|| "computed").await.unwrap(),
    ///     Err(full) => { eprintln!("{full}"); "503" }
    /// };
    /// # assert_eq!(answer, "computed");
    /// # }
    /// ```
    pub fn try_reserve(&self) -> Result<Permit, JoinError> {
        Permit::try_new(&self.submitter)
    }
}
