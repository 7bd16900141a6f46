//! Methods of [`Handle`] and [`Permit`] that take a stream from one lane to the other.

use futures_core::Stream;

use super::Handle;
use crate::admission::Permit;
use crate::bridge::buffer::Bridged;
use crate::bridge::spawn_io::spawn_io;
use crate::bridge::writer::BridgeWriter;

/// # Streams
impl Handle {
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
    /// I/O lane stops or the stream panics before its end, the last item is a
    /// [`BridgeError`](crate::io::BridgeError).
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
        let (writer, reader) = self.io().bridge(limit, size);
        let io = self.submitter.io_runtime();
        match io.and_then(|_| self.submitter.check_open()) {
            Err(closed) => writer.refuse(closed.into()),
            Ok(()) => spawn_io(&self.submitter, writer.forward(stream)).detach_quietly(),
        }
        reader
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
        let lane = self.submitter.clone().without_deadline();
        match Permit::try_new(&lane) {
            Ok(permit) => permit.stream_from_cpu(stream, limit, size),
            Err(cause) => {
                let (writer, reader) = BridgeWriter::new(Some(lane), limit, size);
                writer.refuse(cause);
                reader
            }
        }
    }
}

impl Permit {
    /// Polls `stream` on the CPU lane, with this permit.
    ///
    /// Otherwise the same as [`Handle::stream_from_cpu`](crate::Handle::stream_from_cpu), which
    /// may be refused after the head of an answer went out. The permit goes back when the stream
    /// ends, or its reader is dropped. A [deadline](Self::with_deadline) that has passed refuses
    /// the stream. One that passes later does not end it.
    ///
    /// # Errors
    ///
    /// None here. The items are `Result`s.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use futures::{StreamExt, TryStreamExt};
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let permit = cpu.handle().try_reserve().unwrap(); // an error is a 503
    /// let squares = futures::stream::iter(1..=3_u64).map(|n| n * n); // computed over there
    /// let squares = permit.stream_from_cpu(squares, 1024, |_| 8);
    /// assert_eq!(squares.try_collect::<Vec<_>>().await.unwrap(), [1, 4, 9]);
    /// # }
    /// ```
    #[track_caller]
    pub fn stream_from_cpu<S, W>(self, stream: S, limit: usize, size: W) -> Bridged<S::Item>
    where
        S: Stream + Send + 'static,
        S::Item: Send + 'static,
        W: Fn(&S::Item) -> usize + Send + 'static,
    {
        let (writer, reader) = BridgeWriter::new(Some(self.submitter.clone()), limit, size);
        match self.for_stream() {
            Ok(permit) => permit.spawn(writer.forward(stream)).detach_quietly(),
            Err(cause) => writer.refuse(cause),
        }
        reader
    }
}
