//! Methods of [`Handle`] that wait for a permit of the queue before there is a job.

use super::Handle;
use crate::admission::{Permit, Reserve};
use crate::error::JoinError;

impl Handle {
    /// Waits for a permit of the queue: backpressure.
    ///
    /// The future resolves to a [`Permit`], which spawns. It resolves at once if the queue
    /// has no [limit](crate::Builder::queue_limit), and inside a job, which needs
    /// none. Waiters are served in FIFO order, from their first poll on.
    ///
    /// On a plain thread, use [`Reserve::wait`]. To limit the wait, put Tokio's `timeout_at`
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
    ///     tasks.push(cpu.handle().reserve().await?.spawn_cpu(move || n * n));
    /// }
    /// # for (n, task) in (0..).zip(tasks) { assert_eq!(task.await?, n * n); }
    /// # Ok(()) }
    /// ```
    pub fn reserve(&self) -> Reserve {
        Reserve::new(self.level().clone(), 1, self.deadline)
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
    /// let answer = match cpu.handle().try_reserve() {
    ///     Ok(permit) => permit.spawn_cpu(|| "computed").await.unwrap(),
    ///     Err(full) => { eprintln!("{full}"); "503" }
    /// };
    /// # assert_eq!(answer, "computed");
    /// # }
    /// ```
    pub fn try_reserve(&self) -> Result<Permit, JoinError> {
        self.try_reserve_many(1)
    }

    /// Waits for `weight` permits of the queue at once, which one job then holds.
    ///
    /// As [`reserve`](Self::reserve), for jobs of very different sizes: give
    /// [`queue_limit`](crate::Builder::queue_limit) the sum that the queue may hold, in a unit
    /// of your own, such as KiB of input. A weight of 0 counts 1. So does a job that is submitted
    /// without a permit: where jobs have weights, all submitters of that priority reserve.
    ///
    /// While a large waiter is the first in the line, the queue keeps each free permit for it:
    /// `try_` calls and plain submissions find the queue full until the large job has its permits.
    ///
    /// # Errors
    ///
    /// As [`reserve`](Self::reserve); and [`JoinError::is_too_large`] at once if `weight` is
    /// more than the queue's limit: such a job would never fit.
    ///
    /// # Cancel safety
    ///
    /// As [`reserve`](Self::reserve).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), twolane::JoinError> {
    /// use twolane::{CpuRuntime, Priority};
    /// let kib = 64 << 10; // 64 MiB of images at once
    /// let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, kib).build().unwrap();
    /// let image = vec![0_u8; 3 << 20];
    /// let permit = cpu.handle().reserve_many(image.len().div_ceil(1024) as u32).await?;
    /// let sum = permit.spawn_cpu(move || image.iter().map(|byte| u64::from(*byte)).sum::<u64>());
    /// assert_eq!(sum.await?, 0);
    /// assert!(cpu.handle().reserve_many(u32::MAX).await.unwrap_err().is_too_large());
    /// # Ok(()) }
    /// ```
    pub fn reserve_many(&self, weight: u32) -> Reserve {
        Reserve::new(self.level().clone(), weight, self.deadline)
    }

    /// Returns `weight` permits of the queue if they are free now.
    ///
    /// A weight of 0 counts 1.
    ///
    /// # Errors
    ///
    /// As [`try_reserve`](Self::try_reserve); and [`JoinError::is_too_large`] if `weight` is more
    /// than the queue's limit.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::{CpuRuntime, Priority};
    /// let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, 8).build().unwrap();
    /// let large = cpu.handle().try_reserve_many(6).unwrap();
    /// assert!(cpu.handle().try_reserve_many(3).unwrap_err().is_queue_full());
    /// # drop(large);
    /// # }
    /// ```
    pub fn try_reserve_many(&self, weight: u32) -> Result<Permit, JoinError> {
        let permit = Permit::try_new(self.level(), weight)?;
        Ok(match self.deadline {
            Some(deadline) => permit.with_deadline(deadline),
            None => permit,
        })
    }
}
