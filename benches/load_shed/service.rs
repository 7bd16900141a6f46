//! The service with twolane.

use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::RETRY_AFTER;
use tower::BoxError;
use twolane::{CpuRuntime, Handle, JoinError, Priority};
use twolane_benches::tail::work::Work;

use crate::server::compute;

/// After that no client waits any more.
const PATIENCE: Duration = Duration::from_secs(1);

/// The runtime that surrounds the call is the I/O lane.
pub fn router(work: Work, limit: usize) -> Result<(Router, CpuRuntime), BoxError> {
    let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, limit);
    let cpu = cpu.build()?;
    let handler = move |State(lane)| work_on(lane, work);
    let router = Router::new()
        .route("/work", get(handler).post(handler))
        .route("/health", get(async || "ok"))
        .with_state(cpu.handle().clone());
    Ok((router, cpu))
}

/// If the queue is full, the task fails. When the client goes away this future is dropped, and
/// the task with it: its closure never runs, or finds that out at its next piece.
async fn work_on(lane: Handle, work: Work) -> Response {
    let lane = lane.with_deadline(Instant::now() + PATIENCE);
    let task = lane.spawn_cpu_with(move |job| compute(work, || job.checkpoint()));
    match task.await {
        Ok(hash) => hash.into_response(),
        Err(error) => no_output(&error),
    }
}

fn no_output(error: &JoinError) -> Response {
    if error.is_unavailable() {
        return unavailable(error);
    }
    failed(error)
}

pub fn unavailable(why: &dyn ToString) -> Response {
    let why = why.to_string() + "\n";
    (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], why).into_response()
}

/// A panic, mostly. Its text is for the log, not for the client.
pub fn failed(why: &dyn ToString) -> Response {
    eprintln!("500: {}", why.to_string());
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}
