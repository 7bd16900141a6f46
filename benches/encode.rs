//! Who encodes a large answer? A handler returns 5 MB of JSON, and `/health` is asked beside it.
//!
//! - `handler`: `serde_json` in the handler, as axum's `Json(value)` does after it;
//! - `lane`: [`json_from_cpu`](twolane::axum::json_from_cpu);
//! - `idle`: nobody asks for the answer.
//!
//! Two clients ask one after the other, so that on a machine of two cores both threads of Tokio
//! encode. `/health` is asked every 5 ms; its latency counts from when it was due.
//!
//! ```text
//! cargo bench -p twolane-benches --bench encode
//! ```

use std::convert::Infallible;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hdrhistogram::Histogram;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use twolane::Handle;
use twolane::axum::{JobError, json_from_cpu};
use twolane_benches::{
    Bench, Column, Contender, Contest, Sample, current_thread_runtime, lane, tail,
};

type Client = legacy::Client<HttpConnector, Empty<bytes::Bytes>>;

#[derive(Serialize)]
struct Row {
    id: u64,
    name: String,
    values: [f64; 4],
}

/// What a job has computed: some 5 MB of JSON. For the process's whole life.
type Rows = &'static [Row];

fn rows() -> Rows {
    let row = |id: u64| Row {
        id,
        name: format!("the row of number {id}"),
        values: [0.25, 1.5, 1e-3, 7.0].map(|x| x * id as f64),
    };
    Vec::leak((0..54_000).map(row).collect())
}

async fn in_the_handler(State((_, rows)): State<(Handle, Rows)>) -> Response {
    serde_json::to_vec(&rows).unwrap().into_response()
}

async fn on_the_lane(State((cpu, rows)): State<(Handle, Rows)>) -> Result<Response, JobError> {
    json_from_cpu(cpu.try_reserve()?, rows).await
}

fn main() -> ExitCode {
    let bench = Bench::new("encode");
    let counted = Duration::from_millis(bench.pick([200, 2_000, 5_000, 20_000]));
    let io = Runtime::new().unwrap();
    let cpu = lane(io.handle(), |lane| lane);
    let app = Router::new()
        .route("/handler", get(in_the_handler))
        .route("/lane", get(on_the_lane))
        .route("/health", get(async || "ok"))
        .with_state((cpu.handle().clone(), rows()));
    let listener = io.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    io.spawn(axum::serve(listener, app).into_future());
    let server = &server;
    let contenders = ["idle", "handler", "lane"].map(|way| {
        let url = format!("{server}/{way}");
        Contender::new(way, move || {
            let url = &url;
            let end = Instant::now() + counted;
            thread::scope(|scope| {
                let clients = if way == "idle" { 0 } else { 2 };
                let clients: Vec<_> = (0..clients)
                    .map(|_| scope.spawn(move || answers(url, end)))
                    .collect();
                let health = health(&format!("{server}/health"), end);
                let answers = clients.into_iter().map(|client| client.join().unwrap());
                let (answers, bytes): (Vec<_>, Vec<_>) = answers.unzip();
                let mut sample = Sample::default();
                if let Some(bytes) = bytes.first() {
                    let answers = answers.iter().sum::<f64>() / counted.as_secs_f64();
                    sample.put("answers", "1/s", answers);
                    sample.put("size", "MB", bytes / 1e6);
                }
                sample.put_latencies("health", health);
                Ok(sample)
            })
        })
    });
    let contest = Contest::new(&bench, contenders, [1, 1, 3, 5], counted + tail::REST);
    contest.report(|report| {
        report.table(
            "/health, ms; answers a second, and their size",
            "",
            &[
                Column::pooled("/health p50", "health", 0.5),
                Column::pooled("p99", "health", 0.99),
                Column::pooled("max", "health", 1.0),
                Column::spread("answers", "answers"),
                Column::median("MB", "size"),
            ],
        );
        report.ratio(
            "health_p99_handler_over_lane",
            "health_p99",
            "handler",
            "lane",
        );
        report.ratio("answers_lane_over_handler", "answers", "lane", "handler");
    })
}

fn client() -> (Runtime, Client) {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = legacy::Client::builder(TokioExecutor::new()).build(connector);
    (current_thread_runtime(), client)
}

async fn get_all(client: &Client, url: &str) -> usize {
    let response = client.get(url.parse().unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await.unwrap();
    body.to_bytes().len()
}

/// How many answers came, and the bytes of one.
fn answers(url: &str, end: Instant) -> (f64, f64) {
    let (runtime, client) = client();
    let (mut answers, mut bytes) = (0.0, 0);
    while Instant::now() < end {
        bytes = runtime.block_on(get_all(&client, url));
        answers += 1.0;
    }
    (answers, bytes as f64)
}

fn health(url: &str, end: Instant) -> Histogram<u64> {
    let (runtime, client) = client();
    let asked = tail::ask_each(Duration::from_millis(5), Instant::now(), end, || {
        runtime.block_on(get_all(&client, url));
        Ok::<_, Infallible>(())
    });
    asked.unwrap()
}
