//! [`IoConnector`]: object_store's HTTP requests on the I/O lane.
//!
//! One type, and the same lines of code for each version of object_store.
//!
//! What is ours, a [`JoinError`](crate::JoinError) or a
//! [`BridgeError`](crate::BridgeError), gets the kind `Unknown`, for which
//! object_store does not send a request again: no second try brings a runtime
//! back. (In mid-body it heeds no kind.) The inner client's errors keep the
//! kind that it gave them.

use std::fmt;

use async_trait::async_trait;
use http_body_util::BodyExt;

use crate::bridge::body::{BodyError, DEFAULT_BODY_LIMIT};
use crate::handle::Handle;

// Its example is for this version.
#[cfg_attr(
    feature = "object_store_0_14",
    doc = include_str!("../../docs/object_store.md")
)]
#[cfg_attr(
    not(feature = "object_store_0_14"),
    doc = "Wraps an object_store connector, so that a store does its requests on the I/O lane.",
    doc = "More is in `docs/object_store.md`, which is this page with the feature `object_store_0_14`."
)]
#[derive(Clone, Debug)]
pub struct IoConnector<C> {
    connector: C,
    io: Io,
}

/// Where requests go, and how much of a body is read ahead.
#[derive(Clone)]
struct Io {
    handle: Handle,
    body_limit: usize,
}

impl<C> IoConnector<C> {
    /// What `connector` connects does its requests on the I/O lane of `handle`.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// # use object_store_0_14 as object_store;
    /// use object_store::client::ReqwestConnector;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let connector = twolane::IoConnector::new(ReqwestConnector::default(), &cpu.handle());
    /// # drop(connector);
    /// # }
    /// ```
    pub fn new(connector: C, handle: &Handle) -> Self {
        let io = Io {
            handle: handle.clone(),
            body_limit: DEFAULT_BODY_LIMIT,
        };
        Self { connector, io }
    }

    /// Reads at most so many bytes of each body (and one frame) ahead; with 0,
    /// one frame at a time. Default: [`DEFAULT_BODY_LIMIT`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// # use object_store_0_14 as object_store;
    /// use object_store::client::ReqwestConnector;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let connector = twolane::IoConnector::new(ReqwestConnector::default(), &cpu.handle());
    /// let connector = connector.body_limit(8 << 20);
    /// # drop(connector);
    /// # }
    /// ```
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.io.body_limit = bytes;
        self
    }
}

impl fmt::Debug for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Io")
            .field("body_limit", &self.body_limit)
            .finish_non_exhaustive()
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
                    // A client may start tasks, or open connections, when made.
                    let _io = self.io.handle.io_handle().enter();
                    Ok(HttpClient::new(OnIo {
                        client: self.connector.connect(options)?,
                        io: self.io.clone(),
                    }))
                }
            }

            #[derive(Debug)]
            struct OnIo {
                client: HttpClient,
                io: Io,
            }

            #[async_trait]
            impl HttpService for OnIo {
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
