//! JSON that the lane encodes and parses: [`json_from_cpu`], [`CpuJson`].

use std::any::type_name;
use std::error::Error;
use std::fmt;

use axum_core::extract::rejection::BytesRejection;
use axum_core::extract::{FromRef, FromRequest, Request};
use axum_core::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use twolane_core::{Handle, Permit, adapters};

use super::{HasPermit, JobError};
use crate::stream::drop_on_lane::DropOnLane;

const JSON: &str = "application/json";

/// Makes an answer of a value that the CPU lane serialises: for large ones.
///
/// axum's `Json(value)` serialises on the I/O lane, *after* the handler: 5 MB take milliseconds there,
/// in which no timer fires and no socket is read. Here that is a job. The value is dropped on the
/// lane as well, also if the job is refused. So take the permit before you make a large value, by
/// [`Reserved`](super::Reserved), or by [`try_reserve`](twolane_core::Handle::try_reserve). A value
/// that a job computes is best encoded in that very job: have it return the bytes.
///
/// The answer is 200 with `content-type: application/json`.
///
/// # Errors
///
/// [`JobError`] if the permit's deadline has passed, or the lane was shut down, which is a 503. A
/// value that cannot be serialised is an answer of 500 without a text; with the feature `tracing`
/// the error goes to the log.
///
/// # Cancel safety
///
/// If the future is dropped, as axum does when the client goes, the job is cancelled.
///
/// # Examples
///
/// ```
/// use axum::response::Response;
/// use twolane::axum::{JobError, Reserved, json_from_cpu};
///
/// async fn squares(Reserved(permit): Reserved) -> Result<Response, JobError> {
///     let squares: Vec<u64> = (0..100_000).map(|n| n * n).collect();
///     json_from_cpu(permit, squares).await
/// }
/// ```
#[track_caller]
pub fn json_from_cpu<T>(
    permit: Permit,
    value: T,
) -> impl Future<Output = Result<Response, JobError>> + Send
where
    T: Serialize + Send + 'static,
{
    let value = DropOnLane::new(&adapters::handle_of(&permit), value);
    let answer = permit.spawn_cpu(move || encode(&*value));
    async { Ok(answer.await?) }
}

fn encode(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(json) => ([(CONTENT_TYPE, JSON)], json).into_response(),
        Err(_error) => {
            #[cfg(feature = "tracing")]
            tracing::error!(target: "twolane", error = %_error, "an answer is no JSON");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// An extractor: a JSON body that the CPU lane parses.
///
/// As axum's `Json`, whose limit (`DefaultBodyLimit`, 2 MB unless set) and status codes it has; the
/// texts are our own. The lane admits the request before its body is read, as by
/// [`Reserved`](super::Reserved): a client that uploads slowly keeps a permit meanwhile. Behind a
/// `Reserved` of the same handler it takes no permit of its own: that one is held while it parses,
/// and is then for the handler's job.
///
/// In [`call_sites`](Handle::call_sites) each type that is parsed has a row of its own, by its name.
///
/// # Errors
///
/// [`CpuJsonRejection`], which answers:
///
/// | the request | answer |
/// |---|---|
/// | the lane is full, or was shut down | 503, by [`JobError`], or 429 if the [key](twolane_core::Key) is |
/// | it has no `content-type: application/json`, or one that ends in `+json` | 415 |
/// | its body is larger than the limit | 413 |
/// | its body is no JSON | 400, with what is wrong |
/// | its body is no such value | 422, with what is wrong |
///
/// # Examples
///
/// ```
/// use axum::{Router, routing::post};
/// use twolane::axum::CpuJson;
/// use twolane::{CpuRuntime, Handle};
///
/// async fn sum(CpuJson(numbers): CpuJson<Vec<u64>>) -> String {
///     numbers.iter().sum::<u64>().to_string()
/// }
/// # #[tokio::main] async fn main() {
/// let cpu = CpuRuntime::new().unwrap();
/// let app: Router = Router::new().route("/sum", post(sum)).with_state(cpu.handle().clone());
/// # drop(app);
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CpuJson<T>(pub T);

impl<T, S> FromRequest<S> for CpuJson<T>
where
    T: DeserializeOwned + Send + 'static,
    S: Send + Sync,
    Handle: FromRef<S>,
{
    type Rejection = CpuJsonRejection;

    async fn from_request(request: Request, state: &S) -> Result<Self, CpuJsonRejection> {
        if !is_json(request.headers()) {
            return Err(CpuJsonRejection::ContentType);
        }
        let cpu = Handle::from_ref(state).with_name(type_name::<Self>());
        let cpu = match request.extensions().get() {
            Some(HasPermit) => cpu.without_limit(),
            None => cpu,
        };
        let permit = super::reserve(&cpu, request.extensions()).map_err(CpuJsonRejection::Job)?;
        let body = Bytes::from_request(request, state).await;
        let body = body.map_err(CpuJsonRejection::Body)?;
        let parsed = permit.spawn_cpu(move || serde_json::from_slice(&body));
        match parsed.await {
            Ok(parsed) => parsed.map(Self).map_err(CpuJsonRejection::Json),
            Err(error) => Err(CpuJsonRejection::Job(error.into())),
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let of = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let of = of.and_then(|of| of.split(';').next()).unwrap_or_default();
    let of = of.trim().to_ascii_lowercase();
    of == JSON || (of.starts_with("application/") && of.ends_with("+json"))
}

/// The error of the extractor [`CpuJson`].
///
/// As an answer it is a status and a text that says what is wrong. For an answer of your own, take
/// `Result<CpuJson<T>, CpuJsonRejection>` as the handler's parameter.
///
/// # Examples
///
/// ```
/// use axum::response::{IntoResponse, Response};
/// use twolane::axum::{CpuJson, CpuJsonRejection};
///
/// async fn sum(body: Result<CpuJson<Vec<u64>>, CpuJsonRejection>) -> Response {
///     match body {
///         Ok(CpuJson(numbers)) => numbers.iter().sum::<u64>().to_string().into_response(),
///         Err(CpuJsonRejection::Job(error)) => error.into_response(), // 503 with `Retry-After`
///         Err(wrong) => (wrong.status(), format!("{{\"error\":{:?}}}", wrong.to_string())).into_response(),
///     }
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum CpuJsonRejection {
    /// The lane refused the request, or did not parse it to its end.
    Job(JobError),
    /// The body is larger than the limit, or broke off.
    Body(BytesRejection),
    /// The `content-type` is not that of JSON.
    ContentType,
    /// The body is no JSON, or no such value.
    Json(serde_json::Error),
}

impl CpuJsonRejection {
    /// Returns the status of the answer: see [`CpuJson`].
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(twolane::axum::CpuJsonRejection::ContentType.status(), 415);
    /// ```
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Job(error) => error.status(),
            Self::Body(error) => error.status(),
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Json(error) if error.is_data() => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Json(_) => StatusCode::BAD_REQUEST,
        }
    }
}

impl fmt::Display for CpuJsonRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NO_VALUE: &str = "Failed to deserialize the JSON body into the target type";
        match self {
            Self::Job(error) => error.fmt(f),
            Self::Body(error) => error.fmt(f),
            Self::ContentType => {
                f.write_str("Expected request with `Content-Type: application/json`")
            }
            Self::Json(error) if error.is_data() => write!(f, "{NO_VALUE}: {error}"),
            Self::Json(error) => write!(f, "Failed to parse the request body as JSON: {error}"),
        }
    }
}

// No `source`: the text is that of the error inside.
impl Error for CpuJsonRejection {}

impl IntoResponse for CpuJsonRejection {
    fn into_response(self) -> Response {
        match self {
            Self::Job(error) => error.into_response(),
            Self::Body(error) => error.into_response(),
            _ => (self.status(), self.to_string()).into_response(),
        }
    }
}
