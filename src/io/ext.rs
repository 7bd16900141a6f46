//! [`HandleExt`]: what a [`Handle`] does for values and bodies of the I/O lane.

#[cfg(feature = "http-body")]
use std::panic::Location;

#[cfg(feature = "http-body")]
use http::Response;
#[cfg(feature = "http-body")]
use http_body::Body;

#[cfg(feature = "http-body")]
use super::body::{BridgedBody, bridge_body};
use super::owned::IoOwned;
#[cfg(feature = "http-body")]
use super::response::{BridgedResponse, bridged};
use twolane_core::Handle;
#[cfg(feature = "http-body")]
use twolane_core::Task;
#[cfg(feature = "http-body")]
use twolane_core::adapters;

/// Methods of a [`Handle`] for values, bodies and responses that live on the I/O lane.
///
/// Bring it into scope: `use twolane::HandleExt;`.
pub trait HandleExt: sealed::Sealed {
    /// Keeps a value on the I/O lane; the returned [`IoOwned`] uses it there and drops it there.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::HandleExt;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let timer = tokio::time::interval(std::time::Duration::from_millis(1));
    /// let mut timer = cpu.handle().io_owned(timer);
    /// timer.with(async |timer| timer.tick().await).await.unwrap();
    /// # }
    /// ```
    fn io_owned<T: Send + 'static>(&self, value: T) -> IoOwned<T> {
        IoOwned::on(self.handle().io(), value)
    }

    /// Reads `body` on the I/O lane, ahead of the reader here.
    ///
    /// The I/O lane reads at most `limit` bytes and one frame ahead. With 0, one frame at
    /// a time crosses. A good `limit` is
    /// [`DEFAULT_BODY_LIMIT`](crate::io::DEFAULT_BODY_LIMIT). The returned body has the size
    /// hint and the trailers of `body`.
    ///
    /// # Cost
    ///
    /// One Tokio task, and none if the body is known to be empty. On an I/O runtime of several
    /// threads, an end that is in doubt costs one more, which ends at once: it asks whether the
    /// runtime is shutting down. In doubt are errors, and the end of a body that knows neither its
    /// length nor its end (HTTP/1.1, chunked).
    ///
    /// # Errors
    ///
    /// None here. The reader gets a [`BodyError`](crate::io::BodyError): the body's own
    /// error, or that the I/O lane stopped before the end of the body.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use http_body_util::{BodyExt, Full};
    /// use twolane::HandleExt;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let body = Full::new(bytes::Bytes::from("hello"));
    /// let bridged = cpu.handle().body_from_io(body, twolane::io::DEFAULT_BODY_LIMIT);
    /// assert_eq!(bridged.collect().await.unwrap().to_bytes(), "hello");
    /// # }
    /// ```
    #[cfg(feature = "http-body")]
    #[track_caller]
    fn body_from_io<B>(&self, body: B, limit: usize) -> BridgedBody<B::Data, B::Error>
    where
        B: Body + Send + 'static,
        B::Data: Send + 'static,
        B::Error: Send + 'static,
    {
        let handle = adapters::at(self.handle(), Location::caller());
        bridge_body(&handle.io(), body, limit)
    }

    /// Runs an HTTP request on the I/O lane.
    ///
    /// `request` is a future of any client whose responses are [`http::Response`]s. The
    /// task returns the response head. The I/O lane reads the body ahead by at most
    /// `body_limit` bytes and one frame, as [`body_from_io`](Self::body_from_io) does.
    ///
    /// For reqwest there is [`send_io`](crate::RequestBuilderExt::send_io), for a tower
    /// service [`IoLayer`](crate::io::IoLayer), and for object_store
    /// [`IoConnector`](crate::io::IoConnector).
    ///
    /// The request starts at the call, even if the task is never polled. The
    /// request's own body is polled on the I/O lane too. If it computes, give it
    /// [`stream_from_cpu`](Handle::stream_from_cpu).
    ///
    /// A request needs the I/O lane alone: after a shutdown of the CPU lane it goes on,
    /// and new requests can be made.
    ///
    /// # Cost
    ///
    /// One Tokio task for the request, and [that of the body](Self::body_from_io). An error of the
    /// request is in doubt, too.
    ///
    /// # Errors
    ///
    /// The task returns a [`JoinError`](crate::JoinError) if the I/O runtime is gone or
    /// the request panicked. The inner error is the client's own.
    ///
    /// # Cancel safety
    ///
    /// Dropping the task stops the request. Dropping the response stops the download.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use http_body_util::{BodyExt, Full};
    /// use twolane::HandleExt;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let request = async { // a client's, on the I/O lane
    ///     Ok::<_, std::io::Error>(http::Response::new(Full::new(bytes::Bytes::from("hello"))))
    /// };
    /// let task = cpu.handle().response_from_io(request, twolane::io::DEFAULT_BODY_LIMIT);
    /// let response = task.await.unwrap().unwrap();
    /// assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");
    /// # }
    /// ```
    #[cfg(feature = "http-body")]
    #[track_caller]
    fn response_from_io<F, B, E>(
        &self,
        request: F,
        body_limit: usize,
    ) -> Task<Result<BridgedResponse<B>, E>>
    where
        F: Future<Output = Result<Response<B>, E>> + Send + 'static,
        B: Body + Send + 'static,
        B::Data: Send + 'static,
        B::Error: Send + 'static,
        E: Send + 'static,
    {
        let io = adapters::at(self.handle(), Location::caller()).io();
        io.spawn(bridged(io.clone(), request, body_limit))
    }
}

impl HandleExt for Handle {}

mod sealed {
    use twolane_core::Handle;

    #[allow(unnameable_types, reason = "a sealed trait")]
    pub trait Sealed {
        fn handle(&self) -> &Handle;
    }

    impl Sealed for Handle {
        fn handle(&self) -> &Handle {
            self
        }
    }
}
