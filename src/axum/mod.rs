//! For handlers of [axum](https://docs.rs/axum) 0.8: an error that answers 503, a permit of the
//! queue before the body is read, a deadline from the request; and bodies that the lane computes:
//! JSON ([`CpuJson`], [`json_from_cpu`]) and streams ([`body_from_cpu`]). (Feature `axum`.)
//!
//! A handler needs none of it: it calls [`spawn_cpu`](crate::Handle::spawn_cpu) and answers a
//! [`JoinError`] as it likes.
//!
//! ```
//! use axum::{Router, body::Bytes, extract::{DefaultBodyLimit, State}, routing::post};
//! use twolane::axum::{JobError, Reserved};
//! use std::time::Duration;
//! use twolane::{CpuRuntime, Handle, Priority};
//!
//! /// One job. A lane that would let it wait for too long is a 503.
//! async fn primes(State(cpu): State<Handle>) -> Result<String, JobError> {
//!     let count = cpu.spawn_cpu(|| (2..10_000).filter(|n| (2..*n).all(|d| n % d > 0)).count());
//!     Ok(count.await?.to_string())
//! }
//!
//! /// The permit comes first: if the lane is full, axum does not read the body.
//! async fn sum(Reserved(permit): Reserved, body: Bytes) -> Result<String, JobError> {
//!     let sum = permit.spawn_cpu(move || body.iter().map(|byte| u64::from(*byte)).sum::<u64>());
//!     Ok(sum.await?.to_string())
//! }
//!
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let wait = Duration::from_millis(500);
//! let cpu = CpuRuntime::builder().max_wait(Priority::Normal, wait).build()?;
//! let app: Router = Router::new()
//!     .route("/primes", axum::routing::get(primes))
//!     .route("/sum", post(sum).layer(DefaultBodyLimit::max(20 << 20)))
//!     .with_state(cpu.handle().clone());
//! # drop(app);
//! # Ok(()) }
//! ```

mod json;
mod stream;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::time::Instant;

use axum_core::extract::{FromRef, FromRequestParts};
use axum_core::response::{IntoResponse, Response};
use http::header::RETRY_AFTER;
use http::request::Parts;
use http::{Extensions, StatusCode};
use twolane_core::io::BridgeError;
use twolane_core::{Handle, JoinError, JoinErrorKind, Key, Permit};

pub use json::{CpuJson, CpuJsonRejection, json_from_cpu};
pub use stream::body_from_cpu;

/// A [`JoinError`] or a [`BridgeError`] as the answer of a handler.
///
/// If the error [is that the lane is unavailable](JoinError::is_unavailable) (the lane is full,
/// the deadline passed, or the lane was shut down), the answer is 503 with a `Retry-After` in
/// seconds: [`max_wait`](crate::Builder::max_wait) if that has refused the job (not if it was a
/// stream), and 1 otherwise or if that is less. If [its key has too many jobs](JoinErrorKind::KeyFull),
/// the answer is the same with 429. Every other error is a 500 without a text: a panic's
/// message is for the log and not for the client. With the feature `tracing`, it goes there.
///
/// # Examples
///
/// ```
/// use axum::response::IntoResponse;
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// cpu.shutdown().await;
/// let error = cpu.spawn_cpu(|| 42).await.unwrap_err();
/// let response = twolane::axum::JobError::from(error).into_response();
/// assert_eq!(response.status(), 503);
/// assert_eq!(response.headers()["retry-after"], "1");
/// # }
/// ```
#[derive(Debug)]
pub struct JobError(Cause);

#[derive(Debug)]
enum Cause {
    Job(JoinError),
    Bridge(BridgeError),
}

impl JobError {
    fn is_unavailable(&self) -> bool {
        match &self.0 {
            Cause::Job(error) => error.is_unavailable(),
            Cause::Bridge(error) => error.is_unavailable(),
        }
    }

    /// Returns the status of the answer: 503, 429 or 500.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::{CpuRuntime, axum::JobError};
    /// let cpu = CpuRuntime::new().unwrap();
    /// let panicked = cpu.spawn_cpu(|| panic!("a bug")).await.unwrap_err();
    /// assert_eq!(JobError::from(panicked).status(), 500);
    /// # }
    /// ```
    pub fn status(&self) -> StatusCode {
        match &self.0 {
            Cause::Job(error) if error.kind() == JoinErrorKind::KeyFull => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Cause::Bridge(error) if error.is_key_full() => StatusCode::TOO_MANY_REQUESTS,
            _ if self.is_unavailable() => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// In whole seconds, rounded up.
    fn retry_after(&self) -> u64 {
        let after = match &self.0 {
            Cause::Job(error) => error.retry_after(),
            Cause::Bridge(_) => None,
        };
        after.map_or(1, |after| after.as_millis().div_ceil(1_000) as u64)
    }
}

impl From<JoinError> for JobError {
    fn from(error: JoinError) -> Self {
        Self(Cause::Job(error))
    }
}

/// For the streams and readers between the lanes.
impl From<BridgeError> for JobError {
    fn from(error: BridgeError) -> Self {
        Self(Cause::Bridge(error))
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Cause::Job(error) => error.fmt(f),
            Cause::Bridge(error) => error.fmt(f),
        }
    }
}

// No `source`: the text is that of the error inside.
impl Error for JobError {}

impl IntoResponse for JobError {
    fn into_response(self) -> Response {
        let status = self.status();
        if self.is_unavailable() {
            let head = [(RETRY_AFTER, self.retry_after().to_string())];
            return (status, head, "try again later\n").into_response();
        }
        #[cfg(feature = "tracing")]
        tracing::error!(target: "twolane", error = %self, "a handler answers 500");
        status.into_response()
    }
}

/// An extractor: a [`Permit`] of the queue, as by [`try_reserve`](Handle::try_reserve).
///
/// axum runs the extractors in the order of the handler's parameters, and the one that reads the
/// body last. With this one, a request that finds the queue full is answered with 503 before its
/// body is in memory. Over HTTP/1.1 a client that is still sending may see a broken pipe instead,
/// unless it sends `Expect: 100-continue`. A client that uploads slowly keeps its permit meanwhile,
/// so limit the time of a request ([a middleware that does](crate::guide::overload#answer-503)).
///
/// The application's state is a [`Handle`], or contains one (axum's `FromRef`). The permit is
/// that of the handle's priority. For routes of another priority, make a second `Router` whose
/// state has `cpu.with_priority(..)`, and `merge` the two. If the request has a [`Deadline`], the
/// job has it too, and so it has the [`Key`] that a middleware has put into the request's extensions.
///
/// A [`CpuJson`] behind it in the same handler parses by this permit, too. So use it as an extractor
/// of the handler, not as a middleware (`from_extractor`), whose permit is gone when the handler
/// begins.
///
/// # Errors
///
/// [`JobError`]: the queue is full, or that of the key (429), the lane was shut down, or its I/O runtime
/// is gone.
///
/// # Examples
///
/// ```
/// use axum::body::Bytes;
/// use twolane::axum::{JobError, Reserved};
///
/// async fn length(Reserved(permit): Reserved, body: Bytes) -> Result<String, JobError> {
///     Ok(permit.spawn_cpu(move || body.len()).await?.to_string())
/// }
/// ```
#[derive(Debug)]
pub struct Reserved(pub Permit);

impl<S> FromRequestParts<S> for Reserved
where
    S: Send + Sync,
    Handle: FromRef<S>,
{
    type Rejection = JobError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, JobError> {
        let permit = reserve(&Handle::from_ref(state), &parts.extensions)?;
        parts.extensions.insert(HasPermit);
        Ok(Self(permit))
    }
}

/// With the request's deadline.
fn reserve(cpu: &Handle, of_request: &Extensions) -> Result<Permit, JobError> {
    let permit = match of_request.get::<Key>() {
        Some(key) => cpu.with_key(key.clone()).try_reserve()?,
        None => cpu.try_reserve()?,
    };
    Ok(match of_request.get() {
        Some(Deadline(at)) => permit.with_deadline(*at),
        None => permit,
    })
}

/// In a request's extensions: its handler holds a permit, for all that the lane does for it.
#[derive(Clone, Copy)]
struct HasPermit;

/// In a request's extensions: when its answer is of no use any more.
///
/// [`Reserved`] passes it to the job ([`Permit::with_deadline`]). A middleware sets it, from a
/// header or from a time limit of the route. It saves the work of a job that starts too late; the
/// answer comes when the job's turn comes. To answer in time, put a timeout around the handler.
///
/// # Examples
///
/// ```
/// use axum::{Router, extract::Request, middleware::map_request, routing::post};
/// use std::time::{Duration, Instant};
/// use twolane::axum::Deadline;
///
/// /// From a header in milliseconds, 2 seconds without it.
/// async fn deadline(mut request: Request) -> Request {
///     let header = request.headers().get("x-timeout-ms");
///     let limit = header.and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(2_000);
///     let at = Instant::now() + Duration::from_millis(limit);
///     request.extensions_mut().insert(Deadline(at));
///     request
/// }
/// let app: Router = Router::new().route("/", post("")).layer(map_request(deadline));
/// # drop(app);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(pub Instant);
