//! What an axum service answers by this crate's own types, on a real connection.
#![cfg(feature = "axum")]

mod bodies;
mod permits;
#[path = "../../crates/core/tests/support/mod.rs"]
mod support;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::{FromRef, Request, State};
use axum::middleware::map_request;
use axum::routing::{get, post};
use axum::{Extension, Router};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use twolane::axum::{Deadline, JobError, Reserved};
use twolane::{CpuRuntime, Handle, Priority};

/// As in a real application: the handle is a part of the state.
#[derive(Clone)]
struct App {
    cpu: Handle,
}

impl FromRef<App> for Handle {
    fn from_ref(app: &App) -> Self {
        app.cpu.clone()
    }
}

async fn compute(State(cpu): State<Handle>) -> Result<&'static str, JobError> {
    Ok(cpu.spawn_cpu(|| "computed\n").await?)
}

async fn fail(State(cpu): State<Handle>) -> Result<&'static str, JobError> {
    Ok(cpu.spawn_cpu(|| panic!("the password is hunter2")).await?)
}

async fn length(Reserved(permit): Reserved, body: Bytes) -> Result<String, JobError> {
    Ok(permit.spawn_cpu(move || body.len()).await?.to_string())
}

async fn serve(cpu: &CpuRuntime) -> SocketAddr {
    let late = map_request(async |mut request: Request| {
        request.extensions_mut().insert(Deadline(Instant::now()));
        request
    });
    let in_time = Extension(Deadline(Instant::now() + Duration::from_secs(3600)));
    let app = Router::new()
        .route("/compute", get(compute))
        .route("/fail", get(fail))
        .route("/length", post(length))
        .route("/late", post(length).layer(late))
        .route("/in-time", post(length).layer(in_time))
        .with_state(App {
            cpu: cpu.handle().clone(),
        });
    listen(app).await
}

async fn listen(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async { axum::serve(listener, app).await });
    address
}

/// With one thread, and a place for one job. The test has its time limit by that.
fn lane() -> CpuRuntime {
    support::limit_this_thread();
    let cpu = CpuRuntime::builder().thread_name("cpu").worker_threads(1);
    cpu.queue_limit(Priority::Normal, 1).build().unwrap()
}

/// Sends it, and reads the answer up to the end of the connection.
async fn ask(to: SocketAddr, head: &str, body: &str) -> String {
    let mut server = TcpStream::connect(to).await.unwrap();
    let request = format!("{head} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{body}");
    server.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    server.read_to_string(&mut answer).await.unwrap();
    answer
}

fn of(text: &str) -> String {
    format!("content-length: {}\r\n\r\n{text}", text.len())
}

#[tokio::test]
async fn an_error_of_the_lane_is_503_and_a_panic_500() {
    let cpu = lane();
    let server = serve(&cpu).await;
    let answer = ask(server, "GET /compute", "\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let answer = ask(server, "GET /fail", "\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    assert!(!answer.contains("hunter2"), "{answer}");

    let permit = cpu.handle().try_reserve().unwrap();
    let answer = ask(server, "GET /compute", "\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    drop(permit);
    cpu.shutdown().await;
    let answer = ask(server, "GET /compute", "\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
}

/// The client sends the head of a request and waits for an answer before it sends the body.
#[tokio::test]
async fn a_full_queue_answers_before_the_body_is_there() {
    let cpu = lane();
    let server = serve(&cpu).await;
    let permit = cpu.handle().try_reserve().unwrap();
    let answer = ask(server, "POST /length", "content-length: 5\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    drop(permit);
    let answer = ask(server, "POST /length", &of("hello")).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n5"),
        "{answer}"
    );
    assert_eq!(cpu.handle().metrics().permits_in_use, 0);
}

/// In whole seconds, rounded up.
#[tokio::test]
async fn a_limit_in_time_says_when_to_come_back() {
    let _limit = support::time_limit();
    for (wait, seconds) in [(2_500, 3), (2_000, 2), (10, 1)] {
        let cpu = CpuRuntime::builder().worker_threads(1);
        let cpu = cpu.max_wait(Priority::Normal, Duration::from_millis(wait));
        let cpu = cpu.build().unwrap();
        let server = serve(&cpu).await;
        let full = support::Full::of(cpu.handle());
        let answer = ask(server, "POST /length", "content-length: 5\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        let after = format!("retry-after: {seconds}\r\n");
        assert!(answer.contains(&after), "{answer}");
        full.end().await;
    }
}

#[tokio::test]
async fn the_deadline_of_a_request_is_that_of_its_job() {
    let _limit = support::time_limit();
    let cpu = CpuRuntime::new().unwrap();
    let server = serve(&cpu).await;
    let answer = ask(server, "POST /late", &of("hello")).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    let answer = ask(server, "POST /in-time", &of("hello")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let metrics = cpu.handle().metrics();
    assert_eq!((metrics.rejected, metrics.completed), (1, 1));
}
