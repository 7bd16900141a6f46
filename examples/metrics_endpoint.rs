//! An axum service whose CPU lane Prometheus scrapes, by either exporter. Its I/O lane is
//! watched.
//!
//! | route | what it does |
//! |---|---|
//! | `/metrics` | the lane's metrics by `prometheus-client` |
//! | `/facade/metrics` | the same by the `metrics` facade and its Prometheus exporter |
//! | `/work/{priority}/{millis}` | computes for so long; 503 if the queue is full |
//! | `/work/{priority}/{millis}/within/{millis}` | the same, unless it starts too late for its caller |
//! | `/panic` | a job that panics: 500 |
//! | `/report` | a mistake: it computes for 100 ms on the I/O lane. The watch names it |
//! | `/blob`, `/digest` | 8 MiB; and a job at `Low` that downloads and reads them |
//!
//! ```text
//! cargo run --release -p examples --example metrics_endpoint        # http://127.0.0.1:3000
//! ```
//!
//! `examples/tests/dashboard` puts it under load, with a real Prometheus and the Grafana
//! dashboard of `docs/grafana`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{MatchedPath, Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use twolane::metrics::{MetricsReporter, PrometheusCollector};
use twolane::watch::{Watch, WatchLayer};
use twolane::{CpuRuntime, Handle, JoinError, Priority, RequestBuilderExt};

pub type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(&address).await?;
    println!("http://{address}/metrics");
    serve(listener).await
}

struct Service {
    cpu: Handle,
    address: SocketAddr,
    client: reqwest::Client,
    registry: Registry,
    facade: PrometheusHandle,
}

type Shared = State<Arc<Service>>;

pub async fn serve(listener: TcpListener) -> Result<(), Error> {
    let cpu = CpuRuntime::builder()
        .max_wait(Priority::Normal, Duration::from_millis(500))
        // For the dashboard's panel of permits.
        .queue_limit(Priority::Low, 64)
        .watch_io(Watch::new())
        .histograms(true)
        .build()?;

    let mut registry = Registry::default();
    registry.register_collector(Box::new(PrometheusCollector::new(cpu.handle())));

    let facade = PrometheusBuilder::new().install_recorder()?;
    // As often as it is scraped.
    let reporter = MetricsReporter::new(cpu.handle()).with_interval(Duration::from_millis(500));
    tokio::spawn(reporter.describe_and_run());

    let service = Service {
        cpu: cpu.handle().clone(),
        address: listener.local_addr()?,
        client: reqwest::Client::new(),
        registry,
        facade,
    };
    // By the route, not by the path: the names are labels.
    let watch = WatchLayer::new(|request: &Request| {
        let route = request.extensions().get::<MatchedPath>();
        format!(
            "{} {}",
            request.method(),
            route.map_or("", MatchedPath::as_str)
        )
        .into()
    });
    let routes = Router::new()
        .route("/metrics", get(metrics))
        .route(
            "/facade/metrics",
            get(async |State(of): Shared| of.facade.render()),
        )
        .route("/work/{priority}/{millis}", get(work))
        .route(
            "/work/{priority}/{millis}/within/{patience}",
            get(work_in_time),
        )
        .route("/panic", get(panic))
        .route("/blob", get(async || vec![7; 8 << 20]))
        .route("/digest", get(digest))
        .route("/report", get(async || compute(100)))
        .route_layer(watch)
        .with_state(Arc::new(service));
    axum::serve(listener, routes).await?;
    Ok(())
}

async fn metrics(State(of): Shared) -> Result<impl IntoResponse, Failure> {
    let mut text = String::new();
    encode(&mut text, &of.registry)?;
    let open_metrics = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, open_metrics)], text))
}

fn at(cpu: &Handle, priority: &str) -> Handle {
    cpu.with_priority(match priority {
        "high" => Priority::High,
        "low" => Priority::Low,
        _ => Priority::Normal,
    })
}

async fn work(
    State(of): Shared,
    Path((priority, millis)): Path<(String, u64)>,
) -> Result<(), Failure> {
    let job = at(&of.cpu, &priority).spawn_cpu(move || compute(millis));
    Ok(job.await?)
}

async fn work_in_time(
    State(of): Shared,
    Path((priority, millis, patience)): Path<(String, u64, u64)>,
) -> Result<(), Failure> {
    let deadline = Instant::now() + Duration::from_millis(patience);
    let permit = at(&of.cpu, &priority).reserve().await?;
    let job = permit
        .with_deadline(deadline)
        .spawn_cpu(move || compute(millis));
    Ok(job.await?)
}

fn compute(millis: u64) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(millis) {
        std::hint::spin_loop();
    }
}

async fn panic(State(of): Shared) -> Result<(), Failure> {
    Ok(of.cpu.spawn_cpu(|| panic!("planned")).await?)
}

/// The I/O lane reads the body ahead while the job computes: those bytes are in the
/// bridge.
async fn digest(State(of): Shared) -> Result<String, Failure> {
    let request = of.client.get(format!("http://{}/blob", of.address));
    let job = at(&of.cpu, "low").spawn(async move {
        let mut body = request.send_io().await?;
        let mut sum = 0_u64;
        while let Some(part) = body.chunk().await? {
            compute(part.len() as u64 / (16 << 10));
            sum += part.iter().map(|byte| u64::from(*byte)).sum::<u64>();
            twolane::yield_if_due().await;
        }
        Ok::<_, Error>(sum)
    });
    Ok(job.await??.to_string())
}

/// Why there is no answer.
struct Failure(StatusCode);

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        let job = error.downcast_ref::<JoinError>();
        let is_late = job.is_some_and(JoinError::is_unavailable);
        Self(if is_late {
            StatusCode::SERVICE_UNAVAILABLE
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        })
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> axum::response::Response {
        self.0.into_response()
    }
}
