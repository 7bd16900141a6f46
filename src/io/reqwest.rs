//! [`RequestBuilderExt::send_io`]: a reqwest request as a task of the I/O lane.
//!
//! The whole request runs there: reqwest starts its timer in `send()`, and spawns its
//! connection's driver with `tokio::spawn`.

use std::error::Error;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::panic::Location;
use std::pin::Pin;

use reqwest::{Body, RequestBuilder, Response, ResponseBuilderExt};

use super::body::DEFAULT_BODY_LIMIT;
use super::ext::HandleExt;
use twolane_core::{Handle, JoinError, NoCurrentHandle, adapters};

/// Adds `send_io` to [`reqwest::RequestBuilder`].
pub trait RequestBuilderExt {
    /// Sends the request on the I/O lane.
    ///
    /// As [`send`](RequestBuilder::send), but the connection and its driver, the timers
    /// and the reading of the body are on the I/O lane. They make progress while the
    /// job that awaits the request is busy. The response is an ordinary one, with
    /// `url()`, extensions, trailers and the size hint.
    ///
    /// The request starts when it is awaited, on the current handle (or on [another](SendIo::on)).
    /// For what takes a `Future`, there is [`into_future`](IntoFuture::into_future). The body is
    /// read ahead up to [`DEFAULT_BODY_LIMIT`] bytes (or [`body_limit`](SendIo::body_limit)).
    ///
    /// The I/O lane decompresses responses if the client is set to (`gzip` and others). If
    /// that is much work, disable it in the `ClientBuilder` (`.gzip(false)`) and decompress
    /// in the job.
    ///
    /// A request body that is a stream is polled on the I/O lane too. If it computes, give
    /// it [`Handle::stream_from_cpu`].
    ///
    /// # Errors
    ///
    /// [`SendIoError`]: reqwest's own error, or the I/O runtime is gone, or there is no
    /// current handle. If the I/O lane stops while the body is read, reading the body
    /// returns an error that has a [`BridgeError`](crate::io::BridgeError) in its chain of
    /// sources.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts the request on the I/O lane. Dropping the response stops
    /// the download.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # type BoxError = Box<dyn std::error::Error + Send + Sync>;
    /// # async fn job(client: reqwest::Client) -> Result<(), BoxError> {
    /// use twolane::RequestBuilderExt;
    /// let page = client.get("http://127.0.0.1:8080/page").send_io().await?;
    /// let text = page.text().await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    fn send_io(self) -> SendIo;
}

impl RequestBuilderExt for RequestBuilder {
    #[track_caller]
    fn send_io(self) -> SendIo {
        SendIo {
            location: Location::caller(),
            request: self,
            handle: None,
            body_limit: DEFAULT_BODY_LIMIT,
        }
    }
}

/// A request that is sent when it is awaited; made by [`RequestBuilderExt::send_io`].
#[must_use = "nothing is sent unless this is awaited"]
pub struct SendIo {
    request: RequestBuilder,
    location: &'static Location<'static>,
    handle: Option<Handle>,
    body_limit: usize,
}

impl SendIo {
    /// Sends the request on this handle's I/O lane, instead of the current handle's.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use twolane::Handle;
    /// # use twolane::io::SendIoError;
    /// # async fn f(client: reqwest::Client, handle: Handle) -> Result<(), SendIoError> {
    /// use twolane::RequestBuilderExt;
    /// let page = client.get("http://127.0.0.1:8080/page").send_io().on(&handle).await?;
    /// # Ok(()) }
    /// ```
    pub fn on(mut self, handle: &Handle) -> Self {
        self.handle = Some(handle.clone());
        self
    }

    /// Sets how many bytes of the body are read ahead.
    ///
    /// The I/O lane reads at most `bytes` and one frame ahead; with 0, one frame at a time.
    /// Default: [`DEFAULT_BODY_LIMIT`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn f(client: reqwest::Client) -> Result<(), twolane::io::SendIoError> {
    /// use twolane::RequestBuilderExt;
    /// let dump = client.get("http://127.0.0.1:8080/dump").send_io().body_limit(64 << 20).await?;
    /// # Ok(()) }
    /// ```
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    async fn send(self) -> Result<Response, SendIoError> {
        let handle = match self.handle {
            Some(handle) => handle,
            None => Handle::try_current().map_err(SendIoError::NoCurrentHandle)?,
        };
        let sent = async move { self.request.send().await.map(keeping_url) };
        let handle = adapters::at(&handle, self.location);
        let task = handle.response_from_io(sent, self.body_limit);
        let response = task.await.map_err(SendIoError::Join)?;
        let response = response.map_err(SendIoError::Request)?;
        Ok(Response::from(response.map(Body::wrap)))
    }
}

/// Stores the URL where reqwest looks for it: `Response::from` reads it from an extension
/// of the `http::Response`, and only reqwest's builder extension can make that one.
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

impl IntoFuture for SendIo {
    type Output = Result<Response, SendIoError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl fmt::Debug for SendIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendIo")
            .field("body_limit", &self.body_limit)
            .finish_non_exhaustive()
    }
}

/// The error of [`RequestBuilderExt::send_io`]: there is no response.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use twolane::RequestBuilderExt;
/// use twolane::io::SendIoError;
/// // No job, no entered handle, no default: there is no lane to send it on.
/// let sent = reqwest::Client::new().get("http://127.0.0.1:1/").send_io().await;
/// assert!(matches!(sent.unwrap_err(), SendIoError::NoCurrentHandle(_)));
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum SendIoError {
    /// reqwest's own error.
    Request(reqwest::Error),
    /// The request's task has no output: the I/O runtime is gone, or the request
    /// panicked.
    Join(JoinError),
    /// There is no current handle; see [`SendIo::on`].
    NoCurrentHandle(NoCurrentHandle),
}

impl SendIoError {
    /// Returns reqwest's own error, if it is one.
    ///
    /// Use it for `is_timeout`, `is_connect`, `status` and so on.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::RequestBuilderExt;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let refused = reqwest::Client::new().get("http://127.0.0.1:1/");
    /// let sent = refused.send_io().on(cpu.handle()).await;
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

// Transparent: `Display` and `source` are those of the inner error, so that it does not
// appear twice in a chain of sources.
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
