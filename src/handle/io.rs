//! What runs on the I/O lane, or crosses from one lane to the other.

use std::future::Future;

use futures_core::Stream;
#[cfg(feature = "http-body")]
use http::Response;
#[cfg(feature = "http-body")]
use http_body::Body;

use super::Handle;
use crate::bridge::buffer::Bridged;
use crate::bridge::in_context::InIoContext;
use crate::bridge::spawn_io::{self, Tailless};
use crate::bridge::stream;
#[cfg(feature = "http-body")]
use crate::bridge::{
    body::{self, BridgedBody},
    response::{self, BridgedResponse},
};
use crate::task::Task;

impl Handle {
    /// Runs a future on the I/O lane, as a task of the Tokio runtime there,
    /// from anywhere: a CPU job, a rayon child of one, a plain thread.
    ///
    /// Sockets, timers and background tasks that it makes belong to that
    /// runtime, whatever the CPU lane is doing. The span and subscriber of the
    /// submitter go with it. Inside, the free functions use this handle.
    ///
    /// # Errors
    /// None here. The task says what went wrong: [`JoinError`]. If the I/O
    /// runtime ends first, that is [`JoinError::is_io_runtime_gone`].
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
    pub fn spawn_io<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn_io::spawn_io(self.level(), Tailless { future })
    }

    /// A future that is made, polled and dropped here, inside the I/O
    /// runtime's context: what it opens belongs to the I/O lane, while its own
    /// code runs wherever it is awaited.
    ///
    /// For making a client, a connection or a timer from inside a job on
    /// [`Backend::Runtime`] or from a foreign runtime, without a hop. **Not for
    /// requests**: those are polled by a thread that may be busy, and keep
    /// others waiting meanwhile; [`spawn_io`](Self::spawn_io) is for them.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::builder().backend(twolane::Backend::Runtime).build().unwrap();
    /// let handle = cpu.handle();
    /// let bound = cpu.spawn(async move {
    ///     handle.in_io_context(|| tokio::net::TcpListener::bind("127.0.0.1:0")).await
    /// });
    /// assert!(bound.await.unwrap().is_ok());
    /// # }
    /// ```
    pub fn in_io_context<M, F>(&self, make: M) -> InIoContext<F>
    where
        M: FnOnce() -> F,
        F: Future,
    {
        InIoContext::new(self.io_handle().clone(), make)
    }

    /// Polls `stream` on the I/O lane, and gives its items here, or on
    /// whatever thread reads them.
    ///
    /// The I/O lane reads ahead while less than `limit` is buffered, `weigh`
    /// saying what an item counts (bytes, say); so at most `limit` and one
    /// item more are held. With a limit of 0 one item at a time goes across;
    /// an item counts 1 at least. Dropping the result drops the
    /// stream over there.
    ///
    /// # Errors
    /// None here. The items are `Result`s; if the I/O lane stops or the stream
    /// panics before its end, the last one is a
    /// [`BridgeError`](crate::BridgeError).
    ///
    /// # Cost
    /// A task on the I/O lane, and a wake-up of the reader for each item that
    /// it waits for.
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
    pub fn stream_from_io<S, W>(&self, stream: S, limit: usize, weigh: W) -> Bridged<S::Item>
    where
        S: Stream + Send + 'static,
        S::Item: Send + 'static,
        W: Fn(&S::Item) -> usize + Send + 'static,
    {
        stream::from_io(self.level(), stream, limit, weigh)
    }

    /// As [`stream_from_io`](Self::stream_from_io) the other way round: polls
    /// `stream` on the CPU lane.
    ///
    /// For what computes its items and is read by I/O: a request body that is
    /// encoded on the fly, a response that is rendered.
    ///
    /// # Errors
    /// As [`stream_from_io`](Self::stream_from_io); and it is refused where the
    /// priority's queue has a [limit](crate::Builder::queue_limit) and is full.
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
    pub fn stream_from_cpu<S, W>(&self, stream: S, limit: usize, weigh: W) -> Bridged<S::Item>
    where
        S: Stream + Send + 'static,
        S::Item: Send + 'static,
        W: Fn(&S::Item) -> usize + Send + 'static,
    {
        stream::from_cpu(self.level(), stream, limit, weigh)
    }

    /// Reads `body` on the I/O lane, at most `limit` bytes (and one frame)
    /// ahead of whoever reads the result. The size hint and trailers come
    /// along. A good `limit` is [`DEFAULT_BODY_LIMIT`]; with 0, one
    /// frame at a time goes across.
    ///
    /// # Errors
    /// None here. Reading gives [`BodyError`]: the body's own error, or that
    /// the I/O lane stopped before the body was whole.
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
    pub fn body_from_io<B>(&self, body: B, limit: usize) -> BridgedBody<B::Data, B::Error>
    where
        B: Body + Send + 'static,
        B::Data: Send + 'static,
        B::Error: Send + 'static,
    {
        body::from_io(self.level(), body, limit)
    }

    /// Runs `request`, of any client whose responses are [`http::Response`]s,
    /// on the I/O lane: head and body come back, the body read ahead by
    /// at most `body_limit` bytes (and one frame), as with
    /// [`body_from_io`](Self::body_from_io).
    ///
    /// reqwest has [`send_io`](crate::RequestBuilderExt::send_io), a tower
    /// service [`IoLayer`](crate::IoLayer), and object_store
    /// [`IoConnector`](crate::IoConnector).
    ///
    /// It is on its way from here on, whether the task is polled or not. The
    /// request's own body is polled on the I/O lane too; if it computes, give
    /// it [`stream_from_cpu`](Self::stream_from_cpu).
    ///
    /// A request needs the I/O lane alone: it goes on, and others can be made,
    /// when the CPU lane is shut down.
    ///
    /// # Errors
    /// The task's [`JoinError`](crate::JoinError) says that the I/O runtime is
    /// gone or that the request panicked; within it is the client's own error.
    ///
    /// # Cancel safety
    /// Dropping the task stops the request; dropping the response, the
    /// download.
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
        response::from_io(self.level(), request, body_limit)
    }
}
