//! A request as a task of the I/O lane, for any HTTP client.
//!
//! The whole of it runs there: connections, their drivers and timers belong to
//! the runtime that polls the request. The same task that has sent the head of
//! the response over goes on to pump the body.

use std::future::{Future, pending};
use std::pin::Pin;

use http::Response;
use http_body::Body;

use super::body::{BridgedBody, bridge_body};
use super::lane::this_runtime_is_closing;
use super::spawn::{Tail, spawn_io_unless_gone};
use crate::handle::Handle;
use crate::task::Task;

impl Handle {
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
        spawn_io_unless_gone(self, bridged(request, body_limit))
    }
}

type BridgedResponse<B> = Response<BridgedBody<<B as Body>::Data, <B as Body>::Error>>;

async fn bridged<F, B, E>(request: F, body_limit: usize) -> (Result<BridgedResponse<B>, E>, Tail)
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Send,
{
    match request.await {
        Ok(response) => {
            let (head, body) = response.into_parts();
            let (body, pump) = bridge_body(body, body_limit);
            let tail: Tail =
                pump.map(|pump| Box::pin(pump) as Pin<Box<dyn Future<Output = ()> + Send>>);
            (Ok(Response::from_parts(head, body)), tail)
        }
        // Dropped with its runtime, this tells the cause.
        Err(_) if this_runtime_is_closing() => pending().await,
        Err(error) => (Err(error), None),
    }
}
