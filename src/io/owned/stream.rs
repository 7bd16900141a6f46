//! A stream that borrows the value of an [`IoOwned`], for a reader on another thread.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use twolane_core::io::{BridgeError, Bridged};
use twolane_core::{JoinError, adapters};

use super::IoOwned;
use super::slot::lock;

impl<T: Send + 'static> IoOwned<T> {
    /// Polls a stream that borrows the value on the I/O lane, and yields its items here:
    /// rows, messages.
    ///
    /// The closure boxes the stream. sqlx's `fetch` returns a boxed one; for a future that
    /// returns a stream, see `try_flatten_stream` of the `futures` crate. The I/O lane reads
    /// ahead as [`stream_from_io`](crate::Handle::stream_from_io) does, from this call on.
    /// The returned stream borrows the `IoOwned`: drop it before the next call.
    ///
    /// # Errors
    ///
    /// None here. If the closure or the stream panics, or the I/O lane stops before the
    /// end, the last item is a [`BridgeError`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the returned stream drops the closure's stream, on the I/O lane. The next
    /// call begins after that drop.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use futures::{StreamExt, TryStreamExt, stream};
    /// use twolane::HandleExt;
    /// let cpu = twolane::CpuRuntime::new()?;
    /// let mut table = cpu.handle().io_owned(vec!["one", "two", "three"]);
    /// let rows = table.stream(|table| stream::iter(table.drain(..)).boxed(), 1024, |row| row.len());
    /// assert_eq!(rows.take(2).try_collect::<Vec<_>>().await?, ["one", "two"]);
    /// assert_eq!(table.with(async |table| table.len()).await?, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// A call for each row would wait for the end of the rows, so it does not compile:
    ///
    /// ```compile_fail,E0499
    /// # use futures::{StreamExt, stream};
    /// # async fn rows(mut table: twolane::IoOwned<Vec<u8>>) {
    /// let mut rows = table.stream(|table| stream::iter(table.drain(..)).boxed(), 1024, |_| 1);
    /// while let Some(row) = rows.next().await {
    ///     table.with(async |table| table.push(0)).await;
    /// }
    /// # }
    /// ```
    pub fn stream<I, F, W>(
        &mut self,
        f: F,
        limit: usize,
        size: W,
    ) -> impl Stream<Item = Result<I, BridgeError>> + Send + Unpin
    where
        I: Send + 'static,
        F: FnOnce(&mut T) -> Pin<Box<dyn Stream<Item = I> + Send + '_>> + Send + 'static,
        W: Fn(&I) -> usize + Send + 'static,
    {
        self.pump(f, limit, size)
    }

    /// Turns the value into a stream: as [`stream`](Self::stream), and the end or the drop
    /// of the stream drops the value, on the I/O lane.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use futures::{StreamExt, TryStreamExt, stream};
    /// fn rows(table: twolane::IoOwned<Vec<u8>>) -> twolane::io::Bridged<u8> {
    ///     table.into_stream(|table| stream::iter(table.drain(..)).boxed(), 1024, |_| 1)
    /// }
    /// use twolane::HandleExt;
    /// let cpu = twolane::CpuRuntime::new()?;
    /// let rows = rows(cpu.handle().io_owned(vec![1, 2, 3]));
    /// assert_eq!(rows.try_collect::<Vec<_>>().await?, [1, 2, 3]);
    /// # Ok(()) }
    /// ```
    pub fn into_stream<I, F, W>(self, f: F, limit: usize, size: W) -> Bridged<I>
    where
        I: Send + 'static,
        F: FnOnce(&mut T) -> Pin<Box<dyn Stream<Item = I> + Send + '_>> + Send + 'static,
        W: Fn(&I) -> usize + Send + 'static,
    {
        self.pump(f, limit, size)
    }

    fn pump<I, F, W>(&self, f: F, limit: usize, size: W) -> Bridged<I>
    where
        I: Send + 'static,
        F: FnOnce(&mut T) -> Pin<Box<dyn Stream<Item = I> + Send + '_>> + Send + 'static,
        W: Fn(&I) -> usize + Send + 'static,
    {
        let (writer, reader) = self.io.bridge(limit, size);
        let lock = lock(&self.slot);
        let run = async move {
            let mut slot = lock.await;
            let stream = match adapters::catch(|| f(slot.get())) {
                Ok(stream) => stream,
                // The reader gets it as a panic of the stream.
                Err(panic) => Box::pin(Panics(Some(panic), PhantomData)),
            };
            writer.forward(stream).await;
        };
        adapters::detach_quietly(self.io.spawn(run));
        reader
    }
}

/// Panics at its first poll.
struct Panics<I>(Option<JoinError>, PhantomData<fn() -> I>);

impl<I> Stream for Panics<I> {
    type Item = I;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I>> {
        match self.0.take() {
            Some(panic) => panic.resume_unwind(),
            None => Poll::Ready(None),
        }
    }
}
