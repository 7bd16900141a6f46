//! What a [`CpuRuntime`] submits by itself, as its [`Handle`](crate::Handle) does.

use super::CpuRuntime;
use crate::task::{Cancelled, JobContext, Task};

impl CpuRuntime {
    /// Runs a closure on the CPU lane: see [`Handle::spawn_cpu`](crate::Handle::spawn_cpu).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.spawn_cpu(|| 6 * 7).await.unwrap(), 42);
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn_cpu<F, T>(&self, f: F) -> Task<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.handle.spawn_cpu(f)
    }

    /// Runs a closure with a long loop on the CPU lane: see
    /// [`Handle::spawn_cpu_with`](crate::Handle::spawn_cpu_with).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.spawn_cpu_with(|job| {
    ///     for _ in 0..1_000 {
    ///         job.checkpoint()?;
    ///     }
    ///     Ok(42)
    /// });
    /// assert_eq!(task.await.unwrap(), 42);
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn_cpu_with<F, T>(&self, f: F) -> Task<T>
    where
        F: FnOnce(&JobContext) -> Result<T, Cancelled> + Send + 'static,
        T: Send + 'static,
    {
        self.handle.spawn_cpu_with(f)
    }

    /// Runs a future on the CPU lane: see [`Handle::spawn`](crate::Handle::spawn).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.spawn(async { 6 * 7 }).await.unwrap(), 42);
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn(future)
    }
}
