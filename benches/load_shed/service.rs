//! The service with twolane.

use std::time::{Duration, Instant};

use axum::error_handling::HandleErrorLayer;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use http::StatusCode;
use http::header::RETRY_AFTER;
use tower::load_shed::error::Overloaded;
use tower::{BoxError, ServiceBuilder};
use twolane::{CpuRuntime, Handle, JoinError, Priority};
use twolane_benches::tail::work::Work;

use crate::admission::{AdmissionLayer, JobPermit};
use crate::server::compute;

/// After that no client waits any more.
const PATIENCE: Duration = Duration::from_secs(1);

/// The runtime that surrounds the call is the I/O lane.
pub fn router(work: Work, limit: usize) -> Result<(Router, CpuRuntime), BoxError> {
    let builder = CpuRuntime::builder().queue_limit(Priority::Normal, limit);
    let cpu = builder.enable_histograms().build()?;
    let lane = cpu.handle();

    let admission = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(async |error| refused(&error)))
        .load_shed()
        .layer(AdmissionLayer::new(lane.clone()));
    let with_permit = move |Extension(permit)| by_permit(permit, work);
    let plain = move |State(lane)| without_tower(lane, work);
    let router = Router::new()
        .route("/work", get(with_permit).post(with_permit).layer(admission))
        .route("/plain", get(plain).post(plain))
        .route("/metrics", get(metrics))
        .route("/health", get(async || "ok"))
        .with_state(lane);
    Ok((router, cpu))
}

/// Behind the layers: the request has a permit, or it would not be here.
async fn by_permit(permit: JobPermit, work: Work) -> Response {
    let Some(permit) = permit.take() else {
        return failed(&"the route is not behind the AdmissionLayer");
    };
    let permit = permit.with_deadline(Instant::now() + PATIENCE);
    // When the client goes away this future is dropped, and the task with it:
    // its closure never runs, or finds that out at its next slice.
    let task = permit.spawn_cpu_with(move |job| compute(work, || job.checkpoint()));
    match task.await {
        Ok(hash) => hash.into_response(),
        Err(error) => no_output(&error),
    }
}

/// The same without layers: if the queue is full, the task fails. (`try_spawn_cpu` would
/// return the closure.)
async fn without_tower(lane: Handle, work: Work) -> Response {
    let task = lane.spawn_cpu_with(move |job| compute(work, || job.checkpoint()));
    match task.await {
        Ok(hash) => hash.into_response(),
        Err(error) => no_output(&error),
    }
}

/// What comes out of the layers, if not the handler's answer.
fn refused(error: &BoxError) -> Response {
    if error.is::<Overloaded>() {
        return unavailable(error);
    }
    match error.downcast_ref::<JoinError>() {
        Some(error) => no_output(error),
        None => failed(error),
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

async fn metrics(State(lane): State<Handle>) -> String {
    let metrics = lane.metrics();
    let line = |(name, count)| format!("lane_{name} {count}\n");
    let counts = metrics.counters().chain(metrics.gauges());
    let mut text: String = counts.map(line).collect();
    for (name, histogram) in [
        ("queue_wait", &metrics.queue_wait),
        ("run_time", &metrics.run_time),
    ] {
        for q in [0.5, 0.99] {
            let seconds = histogram.quantile(q).unwrap_or_default().as_secs_f64();
            text += &format!("lane_{name}_seconds{{quantile=\"{q}\"}} {seconds:.6}\n");
        }
    }
    text
}
