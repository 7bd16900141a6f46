//! A stream of computed messages that aborts its call if it fails. To copy.
//!
//! A tonic client takes a stream of messages that cannot fail. If a stream just ends at an
//! error, the server takes the messages before it for all of them. What a server does see
//! as an error is a *body* that fails: hyper then resets the call with `INTERNAL_ERROR`.
//! So [`messages`] leaves the error in the request's extensions, and a layer on the
//! channel ([`layered`]) makes the body fail in place of its end.
//!
//! ```ignore
//! let mut client = IngestClient::new(abort::layered(channel, &cpu));
//! let (request, failure) = abort::messages(cpu.stream_from_cpu(rows, 1 << 20, Row::len));
//! let answer = failure.check(client.upload(request).await)?;
//! ```
//!
//! A call that is *dropped* (its job was cancelled, a timeout) is another matter: hyper
//! resets it with `CANCEL`, and a tonic server reads that as the end of the messages. If a
//! part must not pass for the whole, send a last message that says that it is the last.

use std::error::Error;
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use futures::stream::{self, Stream, StreamExt};
use http_body_util::{BodyStream, StreamBody};
use tonic::body::Body;
use tonic::transport::Channel;
use tonic::{Request, Status};
use tower::Layer;
use tower::util::MapRequest;
use twolane::Handle;
use twolane::io::{IoLayer, IoService};

type BoxError = Box<dyn Error + Send + Sync>;

/// Why the messages of a call ended early.
#[derive(Clone, Default)]
pub struct Failure(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Whether the call went through the layer.
    has_layer: AtomicBool,
    cause: Mutex<Option<BoxError>>,
    failed: AtomicBool,
}

/// Makes the request of a call out of messages that may fail.
pub fn messages<T: Send + 'static, E: Into<BoxError>>(
    messages: impl Stream<Item = Result<T, E>> + Send + 'static,
) -> (Request<impl Stream<Item = T> + Send + 'static>, Failure) {
    let failure = Failure::default();
    let shared = failure.0.clone();
    let until_error = messages.scan((), move |(), message| {
        ready(message.map_err(|cause| shared.fail(cause.into())).ok())
    });
    let mut request = Request::new(until_error);
    request.extensions_mut().insert(failure.clone());
    (request, failure)
}

/// A channel whose requests run on the I/O lane, and can be aborted.
pub type AbortableChannel = IoService<MapRequest<Channel, fn(HttpRequest) -> HttpRequest>>;

type HttpRequest = http::Request<Body>;

/// Once, beside the channel.
pub fn layered(channel: Channel, cpu: &Handle) -> AbortableChannel {
    IoLayer::new(cpu).layer(MapRequest::new(channel, fail_body))
}

fn fail_body(request: HttpRequest) -> HttpRequest {
    let Some(Failure(shared)) = request.extensions().get::<Failure>().cloned() else {
        return request;
    };
    shared.has_layer.store(true, Relaxed);
    request.map(|body| {
        let end = stream::once(async move { shared.failed.load(Relaxed) });
        let end = end.filter(|failed| ready(*failed));
        // Without a source: hyper would look for a reason of HTTP/2 in it.
        let end = end.map(|_| Err(Status::aborted("the messages of this call failed")));
        Body::new(StreamBody::new(BodyStream::new(body).chain(end)))
    })
}

impl Shared {
    fn fail(&self, cause: BoxError) {
        *self.cause.lock().unwrap() = Some(cause);
        self.failed.store(true, Relaxed);
    }
}

impl Failure {
    /// Returns the error of the messages instead of that of the call, which is the reset.
    ///
    /// For the call, and for each answer of a bidirectional one. A call that succeeds
    /// without the layer is an error too, since it could not have been aborted.
    pub fn check<T>(&self, answer: Result<T, Status>) -> Result<T, Status> {
        match answer {
            Ok(_) if !self.0.has_layer.load(Relaxed) => Err(Status::failed_precondition(
                "this call could not be aborted: its channel is not `layered`",
            )),
            Ok(answer) => Ok(answer),
            Err(status) => match self.0.cause.lock().unwrap().take() {
                Some(cause) => Err(Status::from_error(cause)),
                None => Err(status),
            },
        }
    }
}
