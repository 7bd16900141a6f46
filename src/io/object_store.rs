//! [`IoConnector`]: object_store's HTTP requests on the I/O lane.
//!
//! One type, and the same code for each version of object_store.
//!
//! Errors of twolane, a [`JoinError`](crate::JoinError) or a
//! [`BridgeError`](crate::io::BridgeError), get the kind `Unknown`. object_store does not
//! retry a request that failed with that kind, and a retry would be of no use: the
//! runtime is gone. (In the middle of a body it ignores the kind.) The inner client's
//! errors keep their kind.

use std::panic::Location;

use async_trait::async_trait;
use http_body_util::BodyExt;

use super::body::{BodyError, DEFAULT_BODY_LIMIT};
use super::ext::HandleExt;
use twolane_core::{Handle, adapters};

/// Wraps an object_store connector, so that a store sends its requests on the I/O lane.
///
/// The guide has the whole setup: [`object_store`](crate::guide::object_store).
///
/// # Examples
///
/// ```
/// use twolane::Handle;
/// use twolane::io::IoConnector;
/// // `connector` is object_store's `ReqwestConnector`, or one of your own. The result is
/// // for `with_http_connector` of a store's builder.
/// fn on_io_lane<C>(connector: C, cpu: &Handle) -> IoConnector<C> {
///     IoConnector::new(connector, cpu)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct IoConnector<C> {
    connector: C,
    io: Io,
}

/// Where requests go, and how much of a body is read ahead.
#[derive(Clone, Debug)]
struct Io {
    handle: Handle,
    body_limit: usize,
}

impl<C> IoConnector<C> {
    /// Wraps `connector`: its clients send their requests on the I/O lane of `handle`.
    ///
    /// # Examples
    ///
    /// ```
    /// use twolane::Handle;
    /// use twolane::io::IoConnector;
    /// fn on_io_lane<C>(connector: C, cpu: &Handle) -> IoConnector<C> {
    ///     IoConnector::new(connector, cpu)
    /// }
    /// ```
    #[track_caller]
    pub fn new(connector: C, handle: &Handle) -> Self {
        let io = Io {
            // In reports, its requests have the place of this call.
            handle: adapters::at(handle, Location::caller()),
            body_limit: DEFAULT_BODY_LIMIT,
        };
        Self { connector, io }
    }

    /// Sets how many bytes of each body are read ahead.
    ///
    /// The I/O lane reads at most `bytes` and one frame ahead; with 0, one frame at a time.
    /// Default: [`DEFAULT_BODY_LIMIT`].
    ///
    /// # Examples
    ///
    /// ```
    /// use twolane::Handle;
    /// use twolane::io::IoConnector;
    /// fn reading_ahead<C>(connector: C, cpu: &Handle) -> IoConnector<C> {
    ///     IoConnector::new(connector, cpu).body_limit(8 << 20)
    /// }
    /// ```
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.io.body_limit = bytes;
        self
    }
}

macro_rules! for_version {
    ($version:ident) => {
        mod $version {
            use ::$version::client::{
                HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
                HttpResponseBody, HttpService,
            };
            use ::$version::{ClientOptions, Result};

            use super::*;

            impl<C: HttpConnector> HttpConnector for IoConnector<C> {
                fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
                    // The connector may start tasks, or open connections.
                    let io = self.io.handle.io();
                    let _io = io.runtime().enter();
                    Ok(HttpClient::new(OnIoLane {
                        client: self.connector.connect(options)?,
                        io: self.io.clone(),
                    }))
                }
            }

            #[derive(Debug)]
            struct OnIoLane {
                client: HttpClient,
                io: Io,
            }

            #[async_trait]
            impl HttpService for OnIoLane {
                async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
                    let client = self.client.clone();
                    let request = async move { client.execute(request).await };
                    let Io { handle, body_limit } = &self.io;
                    let task = handle.response_from_io(request, *body_limit);
                    let response = task
                        .await
                        .map_err(|join| HttpError::new(HttpErrorKind::Unknown, join))??;
                    Ok(response.map(|body| {
                        HttpResponseBody::new(body.map_err(|error| match error {
                            BodyError::Body(own) => own,
                            BodyError::Lost(lost) => HttpError::new(HttpErrorKind::Unknown, lost),
                        }))
                    }))
                }
            }
        }
    };
}

#[cfg(feature = "object_store_0_13")]
for_version!(object_store_0_13);
#[cfg(feature = "object_store_0_14")]
for_version!(object_store_0_14);
