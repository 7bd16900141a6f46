//! [`IoOwned`]: a value that lives on the I/O lane and is owned by a job.
//!
//! The value is in a mutex. A task of the I/O lane locks it, uses it, and unlocks it when
//! the task's future is dropped.
//!
//! - **Order.** [`slot::lock`] enters the mutex's FIFO queue at the call, on the thread of
//!   the owner. So tasks get the value in the order in which the owner submits them, and
//!   not in the order in which the runtime polls them first. A cancelled task keeps its
//!   place until the runtime has dropped it.
//! - **Drop.** The drop of the owner submits one more task. It is the last one, takes the
//!   value out, and drops it. If the runtime is gone, it refuses that task, and the drop
//!   of the slot drops the value.

mod send_async_fn;
mod shared;
mod slot;
mod stream;

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use tokio::sync::Mutex;

pub use send_async_fn::SendAsyncFnOnce;
use send_async_fn::call;
pub use shared::IoShared;
use slot::{Slot, lock};
use twolane_core::Handle;
use twolane_core::io::IoHandle;
use twolane_core::{JoinError, adapters};

/// A value that lives on the I/O lane and is owned by a job: a client, a pooled
/// connection, a transaction.
///
/// The owner may be on any thread. It lends the value to futures that run on the I/O lane:
/// by [`with`](Self::with), [`take`](Self::take) and [`stream`](Self::stream). So all that a
/// client does belongs to the I/O lane: the connections that it opens, the tasks that it
/// spawns, and what its `Drop` spawns to give a connection back or to roll a transaction
/// back.
///
/// Make the value on the I/O lane as well: in [`spawn_io`](crate::spawn_io), or in `with` of
/// another `IoOwned`. With sqlx:
///
/// ```ignore
/// let connect = async move { Ok::<_, sqlx::Error>(IoOwned::new(PgPool::connect(&url).await?)) };
/// let mut pool = twolane::spawn_io(connect).await??;
/// let mut tx = pool.with(async |pool| Ok::<_, sqlx::Error>(IoOwned::new(pool.begin().await?))).await??;
/// tx.with(async |tx| sqlx::query("DELETE FROM jobs").execute(&mut **tx).await).await??;
/// tx.take(async |tx| tx.commit().await).await??;
/// ```
///
/// If many jobs share a value that is cheap to clone, use [`IoShared`].
///
/// # Drop
///
/// Dropping an `IoOwned` returns at once. A task of the I/O lane then drops the value, after
/// the last future that uses it. It does so whatever ended the owner: its own end, a
/// cancel, a deadline, a panic, a shutdown of the CPU lane. A panic in the value's
/// destructor goes to the log.
///
/// If the I/O runtime is gone, the thread that drops the `IoOwned` drops the value, inside
/// that runtime's context. There a `tokio::spawn` in the destructor does not panic, but
/// its task never runs. With the feature `tracing`, a warning names the type of the value.
///
/// The output of a future is no part of the value: the owner's thread gets it and drops
/// it. If an output is a connection or a transaction, return it in an `IoOwned` of its own,
/// as `begin` above.
///
/// # Cost
///
/// A call is a hop to the I/O lane and back, as for [`spawn_io`](crate::spawn_io). Several
/// `.await`s inside one call share that hop. Making an `IoOwned` costs an allocation, and
/// dropping it a task of the I/O lane.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use tokio::net::TcpStream;
/// use twolane::IoOwned;
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let server = listener.local_addr()?;
/// # tokio::spawn(async move {
/// #     let (mut client, _) = listener.accept().await.unwrap();
/// #     let (mut read, mut write) = client.split();
/// #     tokio::io::copy(&mut read, &mut write).await
/// # });
/// let cpu = twolane::CpuRuntime::new()?;
/// let job = cpu.spawn(async move {
///     let connect = async move { std::io::Result::Ok(IoOwned::new(TcpStream::connect(server).await?)) };
///     let mut connection = twolane::spawn_io(connect).await??;
///     let text = String::from("hello"); // computed here
///     let answer = connection.with(async move |connection| {
///         connection.write_all(text.as_bytes()).await?; // two `.await`s, one hop
///         connection.read_u8().await
///     });
///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(answer.await??)
/// });
/// assert_eq!(job.await?.unwrap(), b'h');
/// # Ok(()) }
/// ```
#[must_use = "dropping an `IoOwned` drops its value"]
pub struct IoOwned<T: Send + 'static> {
    slot: Arc<Mutex<Slot<T>>>,
    io: IoHandle,
}

impl<T: Send + 'static> IoOwned<T> {
    pub(super) fn on(io: IoHandle, value: T) -> Self {
        let slot = Slot::new(value, io.runtime().clone());
        Self {
            slot: Arc::new(Mutex::new(slot)),
            io,
        }
    }

    /// Keeps a value on the I/O lane of the current handle, as
    /// [`HandleExt::io_owned`](crate::HandleExt::io_owned) does.
    ///
    /// Call it where the value is made: in [`spawn_io`](crate::spawn_io), or in
    /// [`with`](Self::with) of another `IoOwned`.
    ///
    /// # Panics
    ///
    /// If there is no current handle; see [`Handle::try_current`].
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use tokio::net::TcpListener;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let bound = cpu.handle().spawn_io(async { TcpListener::bind("127.0.0.1:0").await.map(twolane::IoOwned::new) });
    /// let mut listener = bound.await.unwrap().unwrap();
    /// assert!(listener.with(async |listener| listener.local_addr()).await.unwrap().is_ok());
    /// # }
    /// ```
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self::on(Handle::current().io(), value)
    }

    /// Runs an async closure over the value, as a task of the I/O lane.
    ///
    /// The closure has to own its captures: `async move |value| ..`. It runs in the span
    /// and with the subscriber of the caller. Inside it, the free functions use the handle
    /// of this `IoOwned`. A call needs the I/O lane alone, so it works after a shutdown of the
    /// CPU lane too.
    ///
    /// What borrows from the value (a row, a cursor, the transaction of a driver that
    /// borrows its connection) has to be used up inside the closure. For a stream of such
    /// items there is [`stream`](Self::stream).
    ///
    /// # Errors
    ///
    /// - [`JoinError::is_panic`] if the closure panicked. The value stays as the panic left
    ///   it. Unless you know that it is whole, drop the `IoOwned`.
    /// - [`JoinErrorKind::IoRuntimeGone`](crate::JoinErrorKind::IoRuntimeGone) if the I/O runtime
    ///   is gone.
    ///
    /// # Cancel safety
    ///
    /// Dropping the returned future drops the closure's future, on the I/O lane. The value
    /// stays, and the next call begins after that drop. What half an operation means to
    /// the value is the same as for a plain `.await` under a timeout: see the client's own
    /// cancel safety.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use twolane::HandleExt;
    /// let cpu = twolane::CpuRuntime::new()?;
    /// let (sender, receiver) = tokio::sync::mpsc::channel(8);
    /// let mut receiver = cpu.handle().io_owned(receiver);
    /// sender.send("ping").await?;
    /// assert_eq!(receiver.with(async |receiver| receiver.recv().await).await?, Some("ping"));
    /// # Ok(()) }
    /// ```
    pub async fn with<F, R>(&mut self, f: F) -> Result<R, JoinError>
    where
        F: AsyncFnOnce(&mut T) -> R + for<'a> SendAsyncFnOnce<'a, T, R> + Send + 'static,
        R: Send + 'static,
    {
        let lock = lock(&self.slot);
        let run = async move { call(f, lock.await.get()).await };
        self.io.spawn(run).await
    }

    /// Gives the value to an async closure on the I/O lane: to commit, to close.
    ///
    /// # Errors
    ///
    /// As for [`with`](Self::with). In each case the value has been dropped, or will be: by
    /// the I/O lane, or where that is gone as [above](Self#drop).
    ///
    /// # Cancel safety
    ///
    /// Dropping the returned future drops the closure's future and the value, on the I/O
    /// lane.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use tokio::io::AsyncWriteExt;
    /// use twolane::HandleExt;
    /// let cpu = twolane::CpuRuntime::new()?;
    /// let (writer, _reader) = tokio::io::duplex(64);
    /// let writer = cpu.handle().io_owned(writer);
    /// writer.take(async |mut writer| writer.shutdown().await).await??;
    /// # Ok(()) }
    /// ```
    pub async fn take<F, Fut>(self, f: F) -> Result<Fut::Output, JoinError>
    where
        F: FnOnce(T) -> Fut + Send + 'static,
        Fut: Future + Send,
        Fut::Output: Send + 'static,
    {
        let lock = lock(&self.slot);
        let run = async move {
            let value = lock.await.take();
            f(value).await
        };
        self.io.spawn(run).await
    }
}

impl<T: Send + 'static> Drop for IoOwned<T> {
    fn drop(&mut self) {
        // After `take`, the slot is empty.
        if self.slot.try_lock().is_ok_and(|slot| slot.is_empty()) {
            return;
        }
        let lock = lock(&self.slot);
        let run = async move { lock.await.drop_value() };
        adapters::detach_quietly(self.io.spawn(run));
    }
}

// A panic of the owner does not touch the value, and the owner learns of one inside a call
// by the call's error.
impl<T: Send + 'static> UnwindSafe for IoOwned<T> {}
impl<T: Send + 'static> RefUnwindSafe for IoOwned<T> {}

impl<T: Send + 'static> fmt::Debug for IoOwned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoOwned")
            .field("in_use", &self.slot.try_lock().is_err())
            .finish_non_exhaustive()
    }
}
