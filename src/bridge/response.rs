//! An HTTP request as a task of the I/O lane, for any HTTP client.
//!
//! The whole request runs there: connections, their drivers and timers belong to the
//! runtime that polls the request. When the head of the response is there, the task
//! hands it over. The same task then goes on to pump the body.

use std::future::{Future, pending};
use std::pin::Pin;

use http::Response;
use http_body::Body;

use super::body::{BridgedBody, bridge_body};
use super::closing::this_runtime_is_closing;
use super::spawn_io::Tail;
use crate::metrics::held::Held;

pub(crate) type BridgedResponse<B> = Response<BridgedBody<<B as Body>::Data, <B as Body>::Error>>;

/// Awaits `request` and bridges its body: for a task of the I/O lane.
pub(crate) async fn bridged<F, B, E>(
    held: Held,
    request: F,
    body_limit: usize,
) -> (Result<BridgedResponse<B>, E>, Tail)
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Send,
{
    match request.await {
        Ok(response) => {
            let (head, body) = response.into_parts();
            let (body, pump) = bridge_body(held, body, body_limit);
            let tail: Tail =
                pump.map(|pump| Box::pin(pump) as Pin<Box<dyn Future<Output = ()> + Send>>);
            (Ok(Response::from_parts(head, body)), tail)
        }
        // The runtime drops this task next. That drop reports the cause.
        Err(_) if this_runtime_is_closing() => pending().await,
        Err(error) => (Err(error), None),
    }
}
