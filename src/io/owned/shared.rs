//! [`IoShared`]: a value on the I/O lane that many jobs use.

use std::fmt;
use std::sync::Arc;

use super::IoOwned;
use twolane_core::JoinError;

/// A value that lives on the I/O lane, is shared by jobs, and is cheap to clone: a
/// connection pool, a multiplexed connection, a client.
///
/// Each call gets a clone of the value, which is made, used and dropped on the I/O lane.
/// Calls run concurrently. The drop of the last `IoShared` drops the value as that of an
/// [`IoOwned`](IoOwned#drop) does.
///
/// # Cost
///
/// That of [`IoOwned`](IoOwned#cost), and a clone of the value for each call. Cloning a
/// `IoShared` costs a reference count.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use twolane::IoShared;
/// let cpu = twolane::CpuRuntime::new()?;
/// let (sender, mut receiver) = tokio::sync::mpsc::channel(8);
/// let sender = cpu.handle().spawn_io(async { IoShared::new(sender) }).await?;
/// for n in [1, 2] {
///     let sender = sender.clone();
///     let job = cpu.spawn(async move { sender.with(async move |sender| sender.send(n).await).await });
///     job.await???;
/// }
/// drop(sender);
/// assert_eq!([receiver.recv().await, receiver.recv().await], [Some(1), Some(2)]);
/// assert_eq!(receiver.recv().await, None); // the last sender is gone
/// # Ok(()) }
/// ```
#[must_use = "dropping the last `IoShared` drops its value"]
pub struct IoShared<T: Send + 'static> {
    value: Arc<IoOwned<T>>,
}

impl<T: Clone + Send + 'static> IoShared<T> {
    /// [`IoOwned::new`], and then [`IoOwned::shared`].
    ///
    /// # Panics
    ///
    /// If there is no current handle; see [`Handle::try_current`](crate::Handle::try_current).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let (sender, _) = tokio::sync::broadcast::channel::<u8>(8);
    /// let sender = cpu.handle().spawn_io(async { twolane::IoShared::new(sender) }).await.unwrap();
    /// assert!(sender.with(async |sender| sender.send(1)).await.unwrap().is_err()); // no receiver
    /// # }
    /// ```
    #[track_caller]
    pub fn new(value: T) -> Self {
        IoOwned::new(value).shared()
    }

    /// Runs an async closure with a clone of the value, as a task of the I/O lane.
    ///
    /// All else is as for [`IoOwned::with`], with one difference: the closure owns its value.
    ///
    /// # Errors
    ///
    /// As for [`IoOwned::with`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the returned future drops the closure's future and its clone, on the I/O
    /// lane.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use twolane::HandleExt;
    /// let cpu = twolane::CpuRuntime::new()?;
    /// let limit = std::sync::Arc::new(tokio::sync::Semaphore::new(5));
    /// let limit = cpu.handle().io_owned(limit).shared();
    /// let permit = limit.with(async |limit| limit.acquire_owned().await);
    /// assert_eq!(permit.await??.num_permits(), 1);
    /// # Ok(()) }
    /// ```
    pub async fn with<F, Fut>(&self, f: F) -> Result<Fut::Output, JoinError>
    where
        F: FnOnce(T) -> Fut + Send + 'static,
        Fut: Future + Send,
        Fut::Output: Send + 'static,
    {
        let shared = self.value.clone();
        let clone_and_run = async move {
            // Locked while `clone` runs: `T` need not be `Sync`.
            let value = shared.slot.lock().await.get().clone();
            f(value).await
        };
        self.value.io.spawn(clone_and_run).await
    }
}

impl<T: Clone + Send + 'static> IoOwned<T> {
    /// Shares the value: each user gets a clone.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::HandleExt;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let shared = cpu.handle().io_owned(1).shared();
    /// let (left, right) = (shared.clone(), shared);
    /// # drop((left, right));
    /// # }
    /// ```
    pub fn shared(self) -> IoShared<T> {
        IoShared {
            value: Arc::new(self),
        }
    }
}

impl<T: Send + 'static> Clone for IoShared<T> {
    fn clone(&self) -> Self {
        let value = self.value.clone();
        Self { value }
    }
}

impl<T: Send + 'static> fmt::Debug for IoShared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoShared").finish_non_exhaustive()
    }
}
