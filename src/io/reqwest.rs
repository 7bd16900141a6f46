//! [`RequestBuilderExt::send_io`]: a reqwest request as a task of the I/O lane.
//!
//! The whole request is made there, since reqwest starts its timer in `send()`
//! and its connection's driver with a bare `tokio::spawn`.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use reqwest::{Body, RequestBuilder, Response, ResponseBuilderExt};

use crate::bridge::body::{BridgedBody, DEFAULT_BODY_LIMIT};
use crate::error::JoinError;
use crate::handle::Handle;
use crate::handle::NoCurrentHandle;
use crate::task::Task;

/// `send_io` for [`reqwest::RequestBuilder`].
pub trait RequestBuilderExt {
    /// As [`send`](RequestBuilder::send), with everything that is I/O on the
    /// I/O lane: the connection and its driver, the timers, the reading of the
    /// body, all go on while the job that asked is busy. The response is an
    /// ordinary one: `url()`, extensions, trailers and the size hint are there.
    ///
    /// It begins at the first poll, on the current handle (or
    /// [`on`](SendIo::on) another). The body is read ahead up to
    /// [`DEFAULT_BODY_LIMIT`] bytes (or [`body_limit`](SendIo::body_limit)).
    ///
    /// A client's `gzip` and the like are undone on the I/O lane. If that is
    /// much work, switch it off in the `ClientBuilder` (`.gzip(false)`) and
    /// decompress in the job.
    ///
    /// A request body that is a stream is polled on the I/O lane too; if it
    /// computes, give it [`Handle::stream_from_cpu`].
    ///
    /// # Errors
    /// [`SendIoError`]: reqwest's own, or that the I/O runtime is gone, or that
    /// there is no current handle. If the I/O lane stops while
    /// the body is read, the body's error says so
    /// ([`BridgeError`](crate::BridgeError) is in its chain of sources).
    ///
    /// # Cancel safety
    /// Dropping it aborts the request on the I/O lane; dropping the response
    /// stops the download.
    ///
    /// ```no_run
    /// # async fn job(client: reqwest::Client) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// use twolane::RequestBuilderExt;
    /// let page = client.get("http://127.0.0.1:8080/page").send_io().await?;
    /// let text = page.text().await?;
    /// # Ok(()) }
    /// ```
    fn send_io(self) -> SendIo;
}

impl RequestBuilderExt for RequestBuilder {
    fn send_io(self) -> SendIo {
        SendIo {
            step: Step::Ready(Box::new(self)),
            handle: None,
            body_limit: DEFAULT_BODY_LIMIT,
        }
    }
}

/// A request on its way; made by [`RequestBuilderExt::send_io`].
///
/// # Panics
/// Polling it again after it is ready panics.
#[must_use = "nothing is sent unless this is awaited"]
pub struct SendIo {
    step: Step,
    handle: Option<Handle>,
    body_limit: usize,
}

type Bridged = BridgedBody<Bytes, reqwest::Error>;

enum Step {
    Ready(Box<RequestBuilder>),
    Sent(Task<Result<http::Response<Bridged>, reqwest::Error>>),
    Done,
}

impl SendIo {
    /// On this handle's I/O lane instead of the current one's.
    ///
    /// ```no_run
    /// # async fn f(client: reqwest::Client, handle: twolane::Handle) -> Result<(), twolane::SendIoError> {
    /// use twolane::RequestBuilderExt;
    /// let page = client.get("http://127.0.0.1:8080/page").send_io().on(&handle).await?;
    /// # Ok(()) }
    /// ```
    pub fn on(mut self, handle: &Handle) -> Self {
        self.handle = Some(handle.clone());
        self
    }

    /// Reads at most so many bytes of the body (and one frame) ahead; with 0,
    /// one frame at a time. Default: [`DEFAULT_BODY_LIMIT`].
    ///
    /// ```no_run
    /// # async fn f(client: reqwest::Client) -> Result<(), twolane::SendIoError> {
    /// use twolane::RequestBuilderExt;
    /// let dump = client.get("http://127.0.0.1:8080/dump").send_io().body_limit(64 << 20).await?;
    /// # Ok(()) }
    /// ```
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    fn send(&mut self, request: RequestBuilder) -> Result<(), NoCurrentHandle> {
        let handle = match self.handle.take() {
            Some(handle) => handle,
            None => Handle::try_current()?,
        };
        let sent = async move { request.send().await.map(keeping_url) };
        self.step = Step::Sent(handle.response_from_io(sent, self.body_limit));
        Ok(())
    }
}

/// reqwest finds the URL of a response that it did not make in an extension
/// that only its own builder extension can make.
fn keeping_url(response: Response) -> http::Response<Body> {
    let url = response.url().clone();
    let (with_url, ()) = http::response::Builder::new()
        .url(url)
        .body(())
        .expect("no part of it can be wrong: it has a URL only")
        .into_parts();
    let mut response = http::Response::<Body>::from(response);
    response.extensions_mut().extend(with_url.extensions);
    response
}

impl Future for SendIo {
    type Output = Result<Response, SendIoError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Step::Ready(_) = this.step {
            if let Step::Ready(request) = std::mem::replace(&mut this.step, Step::Done) {
                if let Err(none) = this.send(*request) {
                    return Poll::Ready(Err(SendIoError::NoCurrentHandle(none)));
                }
            }
        }
        let Step::Sent(task) = &mut this.step else {
            panic!("`SendIo` was polled after it was ready");
        };
        let sent = std::task::ready!(Pin::new(task).poll(cx));
        this.step = Step::Done;
        Poll::Ready(match sent {
            Ok(Ok(response)) => Ok(Response::from(response.map(Body::wrap))),
            Ok(Err(error)) => Err(SendIoError::Request(error)),
            Err(error) => Err(SendIoError::Join(error)),
        })
    }
}

impl fmt::Debug for SendIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendIo")
            .field("body_limit", &self.body_limit)
            .finish_non_exhaustive()
    }
}

/// Why there is no response.
///
/// ```
/// # #[tokio::main] async fn main() {
/// use twolane::{RequestBuilderExt, SendIoError};
/// // No job, no entered handle, no default: nowhere to send it.
/// let sent = reqwest::Client::new().get("http://127.0.0.1:1/").send_io().await;
/// assert!(matches!(sent.unwrap_err(), SendIoError::NoCurrentHandle(_)));
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum SendIoError {
    /// reqwest's own error.
    Request(reqwest::Error),
    /// The request's task did not end: the I/O runtime is gone, or it
    /// panicked.
    Join(JoinError),
    /// There is no current handle; see [`SendIo::on`].
    NoCurrentHandle(NoCurrentHandle),
}

impl SendIoError {
    /// reqwest's own error, if it is one: for `is_timeout`, `is_connect`,
    /// `status` and so on.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::RequestBuilderExt;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let nobody_there = reqwest::Client::new().get("http://127.0.0.1:1/");
    /// let sent = nobody_there.send_io().on(&cpu.handle()).await;
    /// assert!(sent.unwrap_err().as_reqwest().unwrap().is_connect());
    /// # }
    /// ```
    pub fn as_reqwest(&self) -> Option<&reqwest::Error> {
        match self {
            Self::Request(error) => Some(error),
            _ => None,
        }
    }

    fn inner(&self) -> &(dyn Error + 'static) {
        match self {
            Self::Request(error) => error,
            Self::Join(error) => error,
            Self::NoCurrentHandle(error) => error,
        }
    }
}

// Stands for what it wraps: its text and its source, not itself in between.
impl fmt::Display for SendIoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.inner(), f)
    }
}

impl Error for SendIoError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.inner().source()
    }
}
