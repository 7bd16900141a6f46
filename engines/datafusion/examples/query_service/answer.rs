//! The handler: a query's answer, which has until the deadline.

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, RETRY_AFTER};
use axum::response::{ErrorResponse, IntoResponse};
use datafusion::error::DataFusionError as Cause;
use datafusion::prelude::SessionContext;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use tokio::time::{Instant, timeout_at};
use twolane::{CpuStreamExt, Handle};
use twolane_datafusion::{is_unavailable, sql_on};

use super::format::Format;
use super::{App, Error};

/// What a query computes ahead of its client, in bytes.
const AHEAD: usize = 4 << 20;
const BUSY: (StatusCode, [(HeaderName, &str); 1]) =
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")]);

pub async fn query(
    State((cpu, ctx, limit)): State<App>,
    headers: HeaderMap,
    sql: String,
) -> Result<impl IntoResponse, ErrorResponse> {
    let (end, format) = (Instant::now() + limit, Format::accepted(&headers));
    let answer = timeout_at(end, begin(&cpu, &ctx, &sql, format)).await;
    let chunks = answer.map_err(|_| StatusCode::GATEWAY_TIMEOUT)?;
    // The timer drops the query, and so the writer: the body's last item is an error then.
    let (writer, body) = cpu.io().bridge(1, |_| 1);
    tokio::spawn(timeout_at(end, writer.forward(chunks.map_err(failed)?)));
    let body = Body::from_stream(body.map(|chunk| chunk?));
    Ok(([(CONTENT_TYPE, format.media_type())], body))
}

/// Returns with the first batch.
async fn begin(
    cpu: &Handle,
    ctx: &SessionContext,
    sql: &str,
    format: Format,
) -> Result<impl Stream<Item = Result<Bytes, Error>> + Send + use<>, Error> {
    let batches = sql_on(cpu, ctx, sql, AHEAD).await?;
    let [head, tail] = format.ends(&batches.schema())?;
    let chunks = batches.on_cpu(cpu);
    let chunks = chunks.map(move |batch| Ok::<_, Error>(format.encode(&batch?)?));
    let mut chunks = chunks.buffered(4).map(|chunk| chunk?);
    let head = [Some(head), chunks.try_next().await?];
    let head = stream::iter(head.into_iter().flatten().map(Ok));
    Ok(head.chain(chunks).chain(stream::iter([Ok(tail)])))
}

fn failed(error: impl Into<Error>) -> ErrorResponse {
    let error = error.into();
    let wrong = (StatusCode::BAD_REQUEST, format!("{error}\n"));
    let large = (StatusCode::INSUFFICIENT_STORAGE, format!("{error}\n"));
    match error.downcast_ref().map(Cause::find_root) {
        _ if is_unavailable(&*error) => BUSY.into(), // a full queue, or a shutdown
        Some(Cause::ResourcesExhausted(_)) => large.into(), // the memory pool
        Some(Cause::SQL(..) | Cause::Plan(_) | Cause::SchemaError(..)) => wrong.into(),
        Some(Cause::NotImplemented(_)) => wrong.into(), // two statements, `call x()`
        Some(Cause::ArrowError(..)) => wrong.into(),    // a division by 0, a cast
        _ => StatusCode::INTERNAL_SERVER_ERROR.into(),
    }
}
