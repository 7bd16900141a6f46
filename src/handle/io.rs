//! Methods of [`Handle`] for work on the I/O lane, and for streams between the lanes.

use std::future::Future;

use futures_core::Stream;
#[cfg(feature = "http-body")]
use http::Response;
#[cfg(feature = "http-body")]
use http_body::Body;

use super::Handle;
use crate::bridge::buffer::Bridged;
use crate::bridge::on_io::OnIo;
use crate::bridge::spawn_io::{self, Tailless};
use crate::bridge::stream;
#[cfg(feature = "http-body")]
use crate::bridge::{
    body::{BridgedBody, bridge_body},
    response::{BridgedResponse, bridged},
};
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
    /// [`JoinError::is_io_runtime_gone`](crate::JoinError::is_io_runtime_gone).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let address = cpu.spawn_io(async {
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
        spawn_io::spawn_io(self.level(), Tailless { future })
    }

    /// Keeps a value on the I/O lane; the returned [`OnIo`] uses it there and drops it there.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let timer = tokio::time::interval(std::time::Duration::from_millis(1));
    /// let mut timer = cpu.handle().on_io(timer);
    /// timer.with(async |timer| timer.tick().await).await.unwrap();
    /// # }
    /// ```
    pub fn on_io<T: Send + 'static>(&self, value: T) -> OnIo<T> {
        OnIo::on(self.level().clone(), value)
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
    /// None here. The items are `Result`s. If the I/O lane stops or the stream panics
    /// before its end, the last item is a [`BridgeError`](crate::BridgeError).
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
    /// [tonic](crate::guide::clients#tonic-messages-that-are-computed).
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

    /// Reads `body` on the I/O lane, ahead of the reader here.
    ///
    /// The I/O lane reads at most `limit` bytes and one frame ahead. With 0, one frame at
    /// a time crosses. A good `limit` is
    /// [`DEFAULT_BODY_LIMIT`](crate::DEFAULT_BODY_LIMIT). The returned body has the size
    /// hint and the trailers of `body`.
    ///
    /// # Errors
    ///
    /// None here. The reader gets a [`BodyError`](crate::BodyError): the body's own
    /// error, or that the I/O lane stopped before the end of the body.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use http_body_util::{BodyExt, Full};
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let body = Full::new(bytes::Bytes::from("hello"));
    /// let bridged = cpu.handle().body_from_io(body, twolane::DEFAULT_BODY_LIMIT);
    /// assert_eq!(bridged.collect().await.unwrap().to_bytes(), "hello");
    /// # }
    /// ```
    #[cfg(feature = "http-body")]
    #[track_caller]
    pub fn body_from_io<B>(&self, body: B, limit: usize) -> BridgedBody<B::Data, B::Error>
    where
        B: Body + Send + 'static,
        B::Data: Send + 'static,
        B::Error: Send + 'static,
    {
        let (bridged, pump) = bridge_body(self.level().held(), body, limit);
        if let Some(pump) = pump {
            stream::pump_on_io(self.level(), pump);
        }
        bridged
    }

    /// Runs an HTTP request on the I/O lane.
    ///
    /// `request` is a future of any client whose responses are [`http::Response`]s. The
    /// task returns the response head. The I/O lane reads the body ahead by at most
    /// `body_limit` bytes and one frame, as [`body_from_io`](Self::body_from_io) does.
    ///
    /// For reqwest there is [`send_io`](crate::RequestBuilderExt::send_io), for a tower
    /// service [`IoLayer`](crate::IoLayer), and for object_store
    /// [`IoConnector`](crate::IoConnector).
    ///
    /// The request starts at the call, even if the task is never polled. The
    /// request's own body is polled on the I/O lane too. If it computes, give it
    /// [`stream_from_cpu`](Self::stream_from_cpu).
    ///
    /// A request needs the I/O lane alone: after a shutdown of the CPU lane it goes on,
    /// and new requests can be made.
    ///
    /// # Errors
    ///
    /// The task returns a [`JoinError`](crate::JoinError) if the I/O runtime is gone or
    /// the request panicked. The inner error is the client's own.
    ///
    /// # Cancel safety
    ///
    /// Dropping the task stops the request. Dropping the response stops the download.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use http_body_util::{BodyExt, Full};
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let request = async { // a client's, on the I/O lane
    ///     Ok::<_, std::io::Error>(http::Response::new(Full::new(bytes::Bytes::from("hello"))))
    /// };
    /// let task = cpu.handle().response_from_io(request, twolane::DEFAULT_BODY_LIMIT);
    /// let response = task.await.unwrap().unwrap();
    /// assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");
    /// # }
    /// ```
    #[cfg(feature = "http-body")]
    #[track_caller]
    pub fn response_from_io<F, B, E>(
        &self,
        request: F,
        body_limit: usize,
    ) -> Task<Result<BridgedResponse<B>, E>>
    where
        F: Future<Output = Result<Response<B>, E>> + Send + 'static,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Send,
        E: Send + 'static,
    {
        let request = bridged(self.level().held(), request, body_limit);
        spawn_io::spawn_io_unless_gone(self.level(), request)
    }
}
