//! [`IoLayer`]: any HTTP client that is a tower service, on the I/O lane.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use tower_layer::Layer;
use tower_service::Service;

use super::body::{BodyError, BridgedBody, DEFAULT_BODY_LIMIT};
use super::ext::HandleExt;
use twolane_core::{Handle, adapters};

type BoxError = Box<dyn Error + Send + Sync>;

/// A [tower layer](tower_layer::Layer) that runs an HTTP client's requests on the I/O lane.
///
/// Each request is a task of the I/O lane. The bodies of the responses come back through
/// a buffer that is bounded in bytes.
///
/// It works for any `Service<http::Request<_>>` that can be cloned, for example
/// hyper-util's legacy client and tonic's channel. Put it outside of all services that
/// do I/O.
///
/// - Each request has a clone of the service, and waits *on the I/O lane* until the
///   clone is ready. So a limit inside this layer delays the response, and does not
///   show in `poll_ready`, which is always ready. A limit outside of this layer works
///   as usual.
/// - A service that starts background tasks when it is made (tonic's `Channel`) may be
///   made in a job or on the I/O lane: its tasks belong to the I/O lane. If jobs share
///   its connection, that alone is not enough: bodies that busy jobs don't read fill the
///   HTTP/2 window of the connection, and all its requests wait. This layer reads these
///   bodies ahead, up to [`body_limit`](Self::body_limit).
/// - The request starts at the call, even if the future is never polled. Its body is
///   polled on the I/O lane too, at first by the connection's own task. So a body that
///   computes, such as a stream of messages given to tonic, delays all requests of the
///   connection: compute it by [`stream_from_cpu`](Handle::stream_from_cpu). What a
///   tonic call does with the errors of that stream is in
///   [the guide](crate::guide::clients#tonic-messages-that-are-computed).
/// - It serves both lanes, and goes on when the CPU lane is shut down. A request ends
///   when it is complete, when the I/O runtime ends, or when its future is dropped.
///
/// # Errors
///
/// The service's and the body's own errors, unchanged and boxed. If the I/O runtime ends
/// or the request panics there, the future returns a [`JoinError`](crate::JoinError), and
/// a body a [`BridgeError`](crate::io::BridgeError).
///
/// # Cancel safety
///
/// Dropping the future stops the request. Dropping the response stops the download.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use http_body_util::Empty;
/// use hyper_util::{client::legacy::Client, rt::TokioExecutor};
/// use tower::{Layer, ServiceExt};
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let client = Client::builder(TokioExecutor::new()).build_http::<Empty<bytes::Bytes>>();
/// let client = twolane::io::IoLayer::new(cpu.handle()).layer(client);
/// let request = http::Request::get("http://127.0.0.1:1/").body(Empty::new()).unwrap();
/// let job = cpu.spawn(client.oneshot(request)); // polled on the CPU lane
/// assert!(job.await.unwrap().is_err()); // no server listens there
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct IoLayer {
    handle: Handle,
    body_limit: usize,
}

impl IoLayer {
    /// Makes a layer that sends requests on the I/O lane of `handle`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let stack = tower::ServiceBuilder::new().layer(twolane::io::IoLayer::new(cpu.handle()));
    /// # drop(stack);
    /// # }
    /// ```
    #[track_caller]
    pub fn new(handle: &Handle) -> Self {
        Self {
            // In reports, its requests have the place of this call.
            handle: adapters::at(handle, Location::caller()),
            body_limit: DEFAULT_BODY_LIMIT,
        }
    }

    /// Sets how many bytes of each body are read ahead.
    ///
    /// The I/O lane reads at most `bytes` and one frame ahead; with 0, one frame at a time.
    /// Default: [`DEFAULT_BODY_LIMIT`].
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let layer = twolane::io::IoLayer::new(cpu.handle()).body_limit(64 << 10);
    /// # drop(layer);
    /// # }
    /// ```
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }
}

impl<S> Layer<S> for IoLayer {
    type Service = IoService<S>;

    fn layer(&self, inner: S) -> IoService<S> {
        IoService {
            inner,
            layer: self.clone(),
        }
    }
}

/// An HTTP client whose requests run on the I/O lane; made by [`IoLayer`].
#[derive(Clone, Debug)]
pub struct IoService<S> {
    inner: S,
    layer: IoLayer,
}

impl<S, R, B> Service<R> for IoService<S>
where
    S: Service<R, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError> + Send + 'static,
    S::Future: Send,
    R: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError> + Send,
{
    type Response = Response<IoBody<B::Data, B::Error>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let mut service = self.inner.clone();
        let request = async move {
            poll_fn(|cx| service.poll_ready(cx)).await?;
            service.call(request).await
        };
        let IoLayer { handle, body_limit } = &self.layer;
        let task = handle.response_from_io(request, *body_limit);
        Box::pin(async move {
            let response = task.await?.map_err(Into::into)?;
            Ok(response.map(IoBody))
        })
    }
}

/// The body of an [`IoService`]'s response, read on the I/O lane.
///
/// Its errors are the service's own, boxed, or a [`BridgeError`](crate::io::BridgeError).
#[derive(Debug)]
pub struct IoBody<D, E>(BridgedBody<D, E>);

impl<D: Buf, E: Into<BoxError>> Body for IoBody<D, E> {
    type Data = D;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<D>, BoxError>>> {
        Pin::new(&mut self.0)
            .poll_frame(cx)
            .map_err(|error| match error {
                BodyError::Body(own) => own.into(),
                BodyError::Lost(lost) => lost.into(),
            })
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
