//! An axum service that computes, complete in one file.
//!
//! | route | answer |
//! |---|---|
//! | `/primes/{below}` | counts primes on the CPU lane; 503 if the queue is full |
//! | `/health` | `ok`, at once, however busy the CPU lane is |
//! | `/metrics` | the lane's counters, as Prometheus reads them |
//! | `/call-sites` | what the jobs of each line cost, and whether that is worth an offload |
//!
//! On ctrl-c, or on the SIGTERM that a container gets, it stops in the order that
//! loses no answer.
//!
//! ```text
//! cargo run --release --example axum                 # http://127.0.0.1:3000
//! cargo run --release --example axum -- 0.0.0.0:8080
//! ```
//!
//! To copy it: `cargo add twolane axum` and `cargo add tokio -F full`. Its test is
//! `tests/axum.rs`.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;
use twolane::{Cancelled, CpuRuntime, Handle, JobContext, JoinError, Priority};

pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// How many jobs may be queued or running. One job more is answered with 503.
pub const LIMIT: usize = 64;
/// The steps of a shutdown: in sum below the ten seconds that a container has.
const DRAIN: Duration = Duration::from_secs(4);
const JOBS: Duration = Duration::from_secs(3);
const ANSWERS: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(&address).await?;
    println!("try http://{address}/primes/1000000");
    serve(listener, cpu_lane()?, stop_signal()).await
}

/// The surrounding Tokio runtime is its I/O lane.
pub fn cpu_lane() -> Result<CpuRuntime, Error> {
    let builder = CpuRuntime::builder().queue_limit(Priority::Normal, LIMIT);
    Ok(builder.build()?)
}

fn routes(cpu: Handle) -> Router {
    Router::new()
        .route("/primes/{below}", get(primes))
        .route("/health", get(async || "ok\n"))
        .route("/metrics", get(metrics))
        .route("/call-sites", get(call_sites))
        .with_state(cpu)
}

/// If the client goes away, axum drops this future and so the task. A queued job
/// then never runs, and a running one ends at its next checkpoint.
async fn primes(State(cpu): State<Handle>, Path(below): Path<u64>) -> Result<String, Failure> {
    let job = cpu.spawn_cpu_with(move |job| count_primes(below, job));
    let count = job.await??;
    Ok(format!("{count} primes below {below}\n"))
}

fn count_primes(below: u64, job: &JobContext) -> Result<usize, Cancelled> {
    let is_prime = |n: &u64| (2..).take_while(|d| d * d <= *n).all(|d| n % d != 0);
    let mut count = 0;
    for start in (2..below).step_by(1000) {
        job.checkpoint()?;
        let end = below.min(start.saturating_add(1000));
        count += (start..end).filter(is_prime).count();
    }
    Ok(count)
}

/// Why there is no answer.
struct Failure(StatusCode);

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Self {
        // The queue is full, or the lane shuts down.
        if error.is_unavailable() {
            return Self(StatusCode::SERVICE_UNAVAILABLE);
        }
        // A panic. Its text is for the log, not for the client.
        eprintln!("{error}");
        Self(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// From a checkpoint. A client that still waits sees it only at a shutdown.
impl From<Cancelled> for Failure {
    fn from(_: Cancelled) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

/// Of each priority, as Prometheus reads it. The crate's own exporters have histograms, too:
/// see `examples/metrics_endpoint`.
async fn metrics(State(cpu): State<Handle>) -> String {
    let mut text = String::new();
    for priority in [Priority::High, Priority::Normal, Priority::Low] {
        let metrics = cpu.with_priority(priority).metrics();
        let priority = format!("{priority:?}").to_lowercase();
        for (name, n) in metrics.counters().filter(|(name, _)| *name != "submitted") {
            let labels = format!("outcome=\"{name}\",priority=\"{priority}\"");
            text += &format!("twolane_jobs_total{{{labels}}} {n}\n");
        }
        for (name, n) in metrics.gauges() {
            let labels = format!("priority=\"{priority}\",state=\"{name}\"");
            text += &format!("twolane_active_jobs{{{labels}}} {n}\n");
        }
    }
    text
}

/// As a table.
async fn call_sites(State(cpu): State<Handle>) -> String {
    cpu.call_sites().to_string()
}

/// Serves until `stop` is ready, and then shuts down.
pub async fn serve(
    listener: TcpListener,
    cpu: CpuRuntime,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let (stop_server, stopping) = oneshot::channel::<()>();
    let server = axum::serve(listener, routes(cpu.handle()))
        .with_graceful_shutdown(async { drop(stopping.await) });
    let mut server = tokio::spawn(server.into_future());
    stop.await;

    // 1. The server takes no new connections. Requests under way have time to end.
    drop(stop_server);
    let drained = timeout(DRAIN, &mut server).await;
    // 2. The CPU lane stops. A job that has not started never runs, and a running one
    //    ends at its next checkpoint: their handlers answer 503.
    let left = cpu.shutdown_timeout(JOBS).await;
    if !left.is_empty() {
        eprintln!(
            "{} jobs still run, and their requests get no answer ({} threads)",
            left.jobs, left.threads
        );
    }
    // 3. The server sends those answers.
    if drained.is_err() {
        let _ = timeout(ANSWERS, server).await;
    }
    Ok(())
}

/// Ready at the first ctrl-c or SIGTERM.
async fn stop_signal() {
    let ctrl_c = async { tokio::signal::ctrl_c().await.expect("a ctrl-c handler") };
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate()).expect("a SIGTERM handler");
        tokio::select! {
            () = ctrl_c => {}
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    ctrl_c.await;
}
