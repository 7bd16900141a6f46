//! An HTTP request as a task of the I/O lane, for any HTTP client.
//!
//! The whole request runs there: connections, their drivers and timers belong to the
//! runtime that polls the request. When the head of the response is there, the task
//! hands it over, and another task of that lane reads the body ahead. (`tests/io/tasks.rs` counts
//! them.)

use std::future::{Future, pending};

use http::Response;
use http_body::Body;

use super::body::{BridgedBody, bridge_body};
use super::closing::this_runtime_is_closing;
use twolane_core::io::IoHandle;

pub(crate) type BridgedResponse<B> = Response<BridgedBody<<B as Body>::Data, <B as Body>::Error>>;

/// Awaits `request` and bridges its body: for a task of the I/O lane.
pub(crate) async fn bridged<F, B, E>(
    io: IoHandle,
    request: F,
    body_limit: usize,
) -> Result<BridgedResponse<B>, E>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body + Send + 'static,
    B::Data: Send + 'static,
    B::Error: Send + 'static,
{
    match request.await {
        Ok(response) => Ok(response.map(|body| bridge_body(&io, body, body_limit))),
        // The runtime drops this task next. That drop reports the cause.
        Err(_) if this_runtime_is_closing() => pending().await,
        Err(error) => Err(error),
    }
}
