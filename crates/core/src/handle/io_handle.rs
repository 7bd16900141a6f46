//! [`IoHandle`]: spawns on the I/O lane alone.

use crate::bridge::buffer::Bridged;
use crate::bridge::spawn_io::spawn_io;
use crate::bridge::writer::BridgeWriter;
use crate::error::JoinError;
use crate::lane::Submitter;
use crate::task::Task;

/// A handle of the I/O lane.
///
/// [`Handle::io`](crate::Handle::io) returns it. It needs that lane alone: what it spawns runs
/// whether or not the CPU lane was shut down. Use it for what has to go on then: a response
/// whose head was handed over, a connection that is given back to its pool.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let io = cpu.handle().io();
/// let bound = io.spawn(async { tokio::net::TcpListener::bind("127.0.0.1:0").await });
/// assert!(bound.await.unwrap().is_ok());
/// # }
/// ```
#[derive(Clone)]
pub struct IoHandle {
    pub(super) submitter: Submitter,
}

impl IoHandle {
    /// Runs a future on the I/O lane, as [`Handle::spawn_io`](crate::Handle::spawn_io) does, but
    /// also after a shutdown of the CPU lane.
    ///
    /// # Errors
    ///
    /// None here. The task returns
    /// [`JoinErrorKind::IoRuntimeGone`](crate::JoinErrorKind::IoRuntimeGone) if the I/O
    /// runtime ends first, and [`JoinErrorKind::NoIoLane`](crate::JoinErrorKind::NoIoLane) if there
    /// is none.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.handle().io().spawn(async { 1 }).await.unwrap(), 1);
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn_io(&self.submitter, future)
    }

    /// Makes the two ends of a bridge: a writer for the I/O lane, and the stream that its
    /// reader polls anywhere.
    ///
    /// [`BridgeWriter::forward`] reads a stream ahead while the buffered items together count
    /// less than `limit`; `size` says how much an item counts, and an item counts at least 1.
    /// [`Handle::stream_from_io`](crate::Handle::stream_from_io) does both at once. Use this
    /// where the stream has to be made on the I/O lane, or where its task does more.
    ///
    /// # Errors
    ///
    /// If the writer is dropped before its stream's end, the last item is a
    /// [`BridgeError`](crate::io::BridgeError).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use futures::{StreamExt, TryStreamExt, stream};
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let (writer, reader) = cpu.handle().io().bridge(1 << 20, |line: &String| line.len());
    /// let task = cpu.handle().io().spawn(async move {
    ///     let lines = vec!["one".to_owned(), "two".to_owned()]; // from a connection made here
    ///     writer.forward(stream::iter(lines)).await;
    ///     // here the connection goes back to its pool
    /// });
    /// assert_eq!(reader.try_collect::<Vec<_>>().await.unwrap(), ["one", "two"]);
    /// task.await.unwrap();
    /// # }
    /// ```
    pub fn bridge<T, W>(&self, limit: usize, size: W) -> (BridgeWriter<T, W>, Bridged<T>)
    where
        W: Fn(&T) -> usize,
    {
        BridgeWriter::new(None, limit, size)
    }

    /// Returns the Tokio handle of the runtime.
    ///
    /// # Panics
    ///
    /// If the lane has no I/O lane ([`Builder::without_io`](crate::Builder::without_io)).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.handle().io().runtime().id(), tokio::runtime::Handle::current().id());
    /// # }
    /// ```
    #[track_caller]
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        let runtime = self.submitter.io_runtime();
        runtime.unwrap_or_else(|refused| panic!("{}", JoinError::from(refused)))
    }

    /// Returns whether the runtime was shut down, or there is none
    /// ([`Builder::without_io`](crate::Builder::without_io)).
    ///
    /// # Examples
    ///
    /// ```
    /// let io = tokio::runtime::Runtime::new().unwrap();
    /// let cpu = twolane::CpuRuntime::builder().io_handle(io.handle().clone()).build().unwrap();
    /// drop(io);
    /// assert!(cpu.handle().io().is_gone());
    /// ```
    pub fn is_gone(&self) -> bool {
        self.submitter.levels.lane.io.is_gone()
    }
}

debug_by_name!(IoHandle, is_gone: Self::is_gone);
