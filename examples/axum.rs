//! An axum service that hashes passwords, complete in one file.
//!
//! | route | answer |
//! |---|---|
//! | `POST /register`, the password as its body | the hash, computed on the CPU lane; 503 if it would wait for too long |
//! | `GET /health` | `ok`, at once, however busy the CPU lane is |
//! | `GET /metrics` | the lane's metrics, as Prometheus reads them |
//! | `GET /call-sites` | what the jobs of each line cost, and whether that is worth an offload |
//!
//! On ctrl-c, or on the SIGTERM that a container gets, it stops in the order that
//! answers queued requests.
//!
//! ```text
//! cargo run --release -p examples --example axum                 # http://127.0.0.1:3000
//! cargo run --release -p examples --example axum -- 0.0.0.0:8080
//! curl -d 'correct horse' http://127.0.0.1:3000/register
//! ```
//!
//! To copy it, in edition 2024:
//!
//! ```text
//! cargo add twolane -F axum,prometheus-client
//! cargo add axum argon2@0.6 prometheus-client
//! cargo add tokio -F full
//! ```
//!
//! In a debug build argon2 takes about a second, unless your `Cargo.toml` says otherwise:
//! `[profile.dev.package.argon2]` and `[profile.dev.package.blake2]`, each with `opt-level = 3`.
//!
//! Its test is `examples/tests/recipes/service.rs`. Logins, which should not wait behind registrations:
//! `recipes/password.rs`.

use std::sync::Arc;
use std::time::Duration;

use argon2::Argon2;
use argon2::password_hash::{self, PasswordHasher};
use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRef, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;
use twolane::axum::JobError;
use twolane::metrics::PrometheusCollector;
use twolane::{CpuRuntime, Handle, Priority};

pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// A request that would wait for a thread for longer is answered with 503. The lane finds out how
/// long argon2 takes.
pub const MAX_WAIT: Duration = Duration::from_millis(500);
/// The steps of a shutdown: in sum below the ten seconds that a container has.
const DRAIN: Duration = Duration::from_secs(4);
const JOBS: Duration = Duration::from_secs(3);
const ANSWERS: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(&address).await?;
    println!("try: curl -d 'correct horse' http://{address}/register");
    serve(listener, cpu_lane()?, stop_signal()).await
}

/// The surrounding Tokio runtime is its I/O lane.
pub fn cpu_lane() -> Result<CpuRuntime, Error> {
    let builder = CpuRuntime::builder().max_wait(Priority::Normal, MAX_WAIT);
    Ok(builder.histograms(true).build()?)
}

#[derive(Clone)]
struct App {
    cpu: Handle,
    registry: Arc<Registry>,
}

/// For handlers that need the lane alone.
impl FromRef<App> for Handle {
    fn from_ref(app: &App) -> Self {
        app.cpu.clone()
    }
}

fn routes(cpu: Handle) -> Router {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(PrometheusCollector::new(&cpu)));
    let registry = Arc::new(registry);
    Router::new()
        .route(
            "/register",
            post(register).layer(DefaultBodyLimit::max(1_024)),
        )
        .route("/health", get(async || "ok\n"))
        .route("/metrics", get(metrics))
        .route("/call-sites", get(call_sites))
        .with_state(App { cpu, registry })
}

/// The body is small, and is read first: a permit that waited for slow clients would keep others
/// away. (For large bodies: `lab/s3/thumbnails`.)
///
/// If the client goes away, axum drops this future and so the task. A job that is still queued
/// then never runs; argon2 itself cannot be stopped half-way.
async fn register(State(cpu): State<Handle>, password: String) -> Result<String, Failure> {
    // A handler does its own I/O as ever, before and after: is the name free? Insert the row.
    let hash = cpu.spawn_cpu(move || hash_password(&password)).await??;
    Ok(hash + "\n")
}

fn hash_password(password: &str) -> Result<String, password_hash::Error> {
    let hash = Argon2::default().hash_password(password.as_bytes())?; // with a random salt
    Ok(hash.to_string())
}

/// Why there is no answer: the lane has none, or argon2 refused the password.
enum Failure {
    Job(JobError),
    Hash(password_hash::Error),
}

impl From<twolane::JoinError> for Failure {
    fn from(error: twolane::JoinError) -> Self {
        Self::Job(error.into())
    }
}

impl From<password_hash::Error> for Failure {
    fn from(error: password_hash::Error) -> Self {
        Self::Hash(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::Job(error) => error.into_response(),
            Self::Hash(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
        }
    }
}

async fn metrics(State(app): State<App>) -> Result<impl IntoResponse, StatusCode> {
    let mut text = String::new();
    encode(&mut text, &app.registry).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text))
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
    let server = axum::serve(listener, routes(cpu.handle().clone()))
        .with_graceful_shutdown(async { drop(stopping.await) });
    let mut server = tokio::spawn(server.into_future());
    stop.await;

    // 1. The server takes no new connections. Requests under way have time to end.
    drop(stop_server);
    let drained = timeout(DRAIN, &mut server).await;
    // 2. The CPU lane stops. A job that has not started never runs, and a running one
    //    ends at its next checkpoint, if it asks one: their handlers answer 503.
    let left = cpu.shutdown_timeout(JOBS).await;
    if !left.is_empty() {
        eprintln!(
            "{} jobs still run, and their requests may get no answer ({} threads)",
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
