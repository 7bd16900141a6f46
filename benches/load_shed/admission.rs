//! A tower layer: a request goes on when the CPU lane's queue has a permit for its job,
//! and takes that permit with it.
//!
//! Alone it is backpressure. Under `tower::load_shed`, which takes a service that
//! is not ready at once for overloaded, it is load shedding.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use futures::TryFutureExt;
use futures::future::MapErr;
use http::Request;
use tower::{BoxError, Layer, Service};
use twolane::{Handle, Permit, Reserve};

/// In the request's extensions: the permit by which its job is submitted.
///
/// Extensions are cloned with their request, and a permit cannot be cloned. So the first
/// handler that calls `take` gets it. Without such a call it is released with the request.
#[derive(Clone)]
pub struct JobPermit(Arc<Mutex<Option<Permit>>>);

impl JobPermit {
    pub fn take(&self) -> Option<Permit> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[derive(Clone)]
pub struct AdmissionLayer {
    lane: Handle,
}

impl AdmissionLayer {
    pub fn new(lane: Handle) -> Self {
        Self { lane }
    }
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = Admission<S>;

    fn layer(&self, inner: S) -> Admission<S> {
        Admission {
            inner,
            lane: self.lane.clone(),
            reserve: None,
            permit: None,
        }
    }
}

pub struct Admission<S> {
    inner: S,
    lane: Handle,
    /// Its turn in the queue of waiters. Kept from one poll to the next: a new one would
    /// start at the end each time.
    reserve: Option<Reserve>,
    permit: Option<Permit>,
}

/// The clone gets neither the turn nor the permit: each request has its own.
impl<S: Clone> Clone for Admission<S> {
    fn clone(&self) -> Self {
        AdmissionLayer::new(self.lane.clone()).layer(self.inner.clone())
    }
}

impl<S, B> Service<Request<B>> for Admission<S>
where
    S: Service<Request<B>, Error: Into<BoxError>>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = MapErr<S::Future, fn(S::Error) -> BoxError>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // First, so that no permit is held during this wait.
        ready!(self.inner.poll_ready(cx)).map_err(Into::into)?;
        if self.permit.is_none() {
            let reserve = self.reserve.get_or_insert_with(|| self.lane.reserve());
            let reserved = ready!(Pin::new(reserve).poll(cx));
            self.reserve = None;
            self.permit = Some(reserved?);
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let permit = self.permit.take().expect("`poll_ready` was ready");
        let permit = JobPermit(Arc::new(Mutex::new(Some(permit))));
        request.extensions_mut().insert(permit);
        self.inner.call(request).map_err(Into::into)
    }
}
