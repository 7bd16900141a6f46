//! Methods of [`Handle`] for work on the I/O lane, and for streams between the lanes.

use std::future::Future;

use futures_core::Stream;

use super::Handle;
use crate::bridge::buffer::Bridged;
use crate::bridge::spawn_io;
use crate::bridge::stream;
use crate::task::Task;

impl Handle {
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
        spawn_io::spawn_io(self.level(), future)
    }

    /// Polls `stream` on the I/O lane, and yields its items to the reader here.
    ///
    /// The reader may be on any thread. The I/O lane reads ahead while the buffered items
    /// together count less than `limit`; `size` says how much an item counts (its
    /// bytes, for example), and an item counts at least 1. So the buffer holds less than
    /// `limit`, plus one item. With a limit of 0, one item at a time crosses. Dropping the
    /// returned stream drops `stream` on the I/O lane.
    ///
    /// # Errors
    ///
    /// None here. The items are `Result`s. If the CPU lane was shut down before this call, or the
    /// I/O lane stops or the stream panics before its end, the last item is a [`BridgeError`](crate::BridgeError).
    ///
    /// # Cost
    ///
    /// One task on the I/O lane, and one wake-up of the reader for each item that the
    /// reader waits for.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use futures::{StreamExt, TryStreamExt};
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let lines = futures::stream::iter(["one", "two"]);
    /// let bridged = cpu.handle().stream_from_io(lines, 1 << 20, |line| line.len());
    /// let read: Vec<_> = cpu.spawn(bridged.try_collect()).await.unwrap().unwrap();
    /// assert_eq!(read, ["one", "two"]);
    /// # }
    /// ```
    #[track_caller]
    pub fn stream_from_io<S, W>(&self, stream: S, limit: usize, size: W) -> Bridged<S::Item>
    where
        S: Stream + Send + 'static,
        S::Item: Send + 'static,
        W: Fn(&S::Item) -> usize + Send + 'static,
    {
        stream::from_io(self.level(), stream, limit, size)
    }

    /// Polls `stream` on the CPU lane, and yields its items to the reader here.
    ///
    /// The opposite direction of [`stream_from_io`](Self::stream_from_io), with the same
    /// parameters. Use it for a stream that computes its items and is read by I/O: a
    /// request body that is encoded on the fly, a response that is rendered.
    ///
    /// # Errors
    ///
    /// As [`stream_from_io`](Self::stream_from_io). The stream is also refused if the
    /// priority's queue has a [limit](crate::Builder::queue_limit) and is full.
    ///
    /// Do not end a request at such an error: the server would take the part before it
    /// for the whole. A body passes the error on. For a client of plain messages see
    /// tonic in `twolane::guide::clients`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use futures::{StreamExt, TryStreamExt};
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let squares = futures::stream::iter(1..=3_u64).map(|n| n * n); // computed over there
    /// let bridged = cpu.handle().stream_from_cpu(squares, 1024, |_| 8);
    /// assert_eq!(bridged.try_collect::<Vec<_>>().await.unwrap(), [1, 4, 9]);
    /// # }
    /// ```
    #[track_caller]
    pub fn stream_from_cpu<S, W>(&self, stream: S, limit: usize, size: W) -> Bridged<S::Item>
    where
        S: Stream + Send + 'static,
        S::Item: Send + 'static,
        W: Fn(&S::Item) -> usize + Send + 'static,
    {
        stream::from_cpu(self.level(), stream, limit, size)
    }
}
