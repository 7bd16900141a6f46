//! Readiness and liveness: a service that is saturated gets no new requests, and is not restarted.
//!
//! For every service behind a load balancer, or in Kubernetes. `/ready` is 503 while the lane would
//! refuse a job: the balancer sends the next request to another machine. `/live` never looks at the
//! load: a probe that fails under load restarts the machine, and the others get its requests too.
//! Both answer at once, however busy the lane is. Copy [`routes`].
//!
//! The limit is a time ([`Builder::max_wait`](twolane::Builder::max_wait)), so nobody has to count
//! jobs. Readiness turns back by itself, as the queue gets shorter.
//!
//! ```text
//! cargo run --release -p examples --example ready        # http://127.0.0.1:3000, until ctrl-c
//! curl -i http://127.0.0.1:3000/ready
//! ```
//!
//! To copy it: `cargo add twolane -F axum`, `cargo add axum` and `cargo add tokio -F full`.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use twolane::axum::JobError;
use twolane::{BuildError, CpuRuntime, Handle, Priority};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let cpu = cpu_lane()?;
    let listener = TcpListener::bind(&address).await?;
    axum::serve(listener, routes(cpu.handle().clone())).await?;
    Ok(())
}

/// The surrounding Tokio runtime is its I/O lane.
pub fn cpu_lane() -> Result<CpuRuntime, BuildError> {
    let builder = CpuRuntime::builder();
    let half_a_second = Duration::from_millis(500);
    builder.max_wait(Priority::Normal, half_a_second).build()
}

pub fn routes(cpu: Handle) -> Router {
    Router::new()
        .route("/live", get(async || "ok"))
        .route("/ready", get(ready))
        .route("/sum", post(sum))
        .with_state(cpu)
}

/// The permit is dropped at once. A refusal counts in the lane's metrics as `rejected`.
async fn ready(State(cpu): State<Handle>) -> StatusCode {
    match cpu.try_reserve() {
        Ok(_permit) => StatusCode::OK,
        Err(_full) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Stands for what your service computes.
async fn sum(State(cpu): State<Handle>, body: String) -> Result<String, JobError> {
    let sum = cpu.spawn_cpu(move || body.bytes().map(u64::from).sum::<u64>());
    Ok(sum.await?.to_string())
}
