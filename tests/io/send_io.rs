//! Is a response that crossed the lanes the same as one that did not? And if
//! its body is cut short, by either side: is that an error?

use crate::server::{Server, client, h2_client};
use crate::support::{self, BOTH, Lanes, lanes};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;
use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use reqwest::{Client, Response, Version};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use twolane::io::SendIoError;
use twolane::{Backend, BridgeError, CpuRuntime, RequestBuilderExt};

/// Sends from a job.
fn sent(cpu: &CpuRuntime, client: &Client, url: String) -> Result<Response, SendIoError> {
    let request = client.get(url);
    cpu.spawn(async { request.send_io().await }).wait().unwrap()
}

/// Reads in a job.
fn read(cpu: &CpuRuntime, response: Response) -> reqwest::Result<Bytes> {
    cpu.spawn(response.bytes()).wait().unwrap()
}

fn checksum() -> HeaderMap {
    HeaderMap::from_iter([("x-checksum".parse().unwrap(), "5d41".parse().unwrap())])
}

async fn chunked() -> impl IntoResponse {
    let frames = ["hello, ", "world"].map(|text| Ok(Frame::data(Bytes::from(text))));
    let end: [Result<_, std::io::Error>; 1] = [Ok(Frame::trailers(checksum()))];
    let frames = futures::stream::iter(frames.into_iter().chain(end));
    (
        [("trailer", "x-checksum")],
        Body::new(StreamBody::new(frames)),
    )
}

async fn plain() -> impl IntoResponse {
    (StatusCode::ACCEPTED, [("x-kind", "plain")], "hello")
}

fn pages() -> Server {
    let redirect = get(|| async { Redirect::temporary("/plain") });
    let nothing = get(|| async { StatusCode::NO_CONTENT });
    let big = get(|| async { Body::from(big()) });
    Server::start(
        Router::new()
            .route("/plain", get(plain))
            .route("/redirect", redirect)
            .route("/chunked", get(chunked))
            .route("/nothing", nothing)
            .route("/big", big),
    )
}

fn big() -> Vec<u8> {
    (0..8 << 20_u32).map(|n: u32| (n % 251) as u8).collect()
}

/// `url()` after a redirect is what relative links are resolved by; reqwest
/// keeps it outside the `http::Response`, where a rebuilt one loses it.
#[test]
fn the_head_survives() {
    let _limit = support::time_limit();
    let server = pages();
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        for (client, version) in [(client(), Version::HTTP_11), (h2_client(), Version::HTTP_2)] {
            let response = sent(&cpu, &client, server.url("/redirect")).unwrap();
            assert_eq!(response.url().as_str(), server.url("/plain"));
            assert_eq!(response.status(), StatusCode::ACCEPTED);
            assert_eq!(response.version(), version);
            assert_eq!(response.headers()["x-kind"], "plain");
            // It is kept in an extension.
            assert_eq!(response.remote_addr(), Some(server.address));
            assert_eq!(response.content_length(), Some(5));
            assert_eq!(read(&cpu, response).unwrap(), "hello");
        }
    }
}

/// A body without a length, and one with trailers (a gRPC status, a checksum).
#[test]
fn bodies_of_unknown_length_and_their_trailers_survive() {
    let _limit = support::time_limit();
    let server = pages();
    let Lanes { cpu, io: _io } = lanes(Backend::Rayon, 1);
    for client in [client(), h2_client()] {
        let request = client.get(server.url("/chunked")).header("te", "trailers");
        let job = cpu.spawn(async {
            let response = request.send_io().await.unwrap();
            assert_eq!(response.content_length(), None);
            let response = axum::http::Response::<reqwest::Body>::from(response);
            response.into_body().collect().await.unwrap()
        });
        let body = job.wait().unwrap();
        assert_eq!(body.trailers(), Some(&checksum()));
        assert_eq!(body.to_bytes(), "hello, world");
    }
}

#[test]
fn responses_without_a_body_end() {
    let _limit = support::time_limit();
    let server = pages();
    let Lanes { cpu, io: _io } = lanes(Backend::Rayon, 1);
    for client in [client(), h2_client()] {
        let nothing = sent(&cpu, &client, server.url("/nothing")).unwrap();
        assert_eq!(nothing.status(), StatusCode::NO_CONTENT);
        assert!(read(&cpu, nothing).unwrap().is_empty());
        let head = client.head(server.url("/plain"));
        let head = cpu.spawn(async { head.send_io().await }).wait().unwrap();
        let head = head.unwrap();
        assert_eq!(head.headers()["content-length"], "5");
        assert!(read(&cpu, head).unwrap().is_empty());
    }
}

/// Larger than every buffer on its way, with the smallest bound and a large.
#[test]
fn a_big_body_arrives_byte_for_byte() {
    let _limit = support::time_limit();
    let server = pages();
    let Lanes { cpu, io: _io } = lanes(Backend::Rayon, 1);
    for client in [client(), h2_client()] {
        for limit in [0, twolane::io::DEFAULT_BODY_LIMIT, usize::MAX] {
            let request = client.get(server.url("/big")).send_io().body_limit(limit);
            let job = cpu.spawn(async { request.await.unwrap().bytes().await });
            assert!(job.wait().unwrap().unwrap() == big(), "limit {limit}");
        }
    }
}

/// Announces ten bytes, sends five, and waits to be told to go away.
fn half_a_body() -> (Server, tokio::sync::watch::Sender<bool>) {
    let (go, gone) = tokio::sync::watch::channel(false);
    let server = Server::raw(move |mut stream| {
        let mut gone = gone.clone();
        async move {
            let request = stream.read(&mut [0; 1024]).await.unwrap();
            assert_ne!(request, 0);
            let half = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello";
            stream.write_all(half).await.unwrap();
            let _ = gone.wait_for(|gone| *gone).await;
        }
    });
    (server, go)
}

/// Five of ten bytes must not look like a body.
#[test]
fn a_server_that_dies_in_mid_body_is_an_error() {
    let _limit = support::time_limit();
    for backend in BOTH {
        let (server, go) = half_a_body();
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let mut response = sent(&cpu, &client(), server.url("/")).unwrap();
        let (first, response) = cpu
            .spawn(async { (response.chunk().await, response) })
            .wait()
            .unwrap();
        assert_eq!(first.unwrap().unwrap(), "hello");
        go.send(true).unwrap();
        let error = read(&cpu, response).unwrap_err();
        assert!(
            bridge_error(&error).is_none(),
            "the server's fault: {error:?}"
        );
    }
}

fn bridge_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a BridgeError> {
    std::iter::successors(Some(error), |error| error.source())
        .find_map(|error| error.downcast_ref())
}

/// The same from our side: `object_store`'s `SpawnService` returns `Ok` there,
/// with 5 of 10 bytes.
#[test]
fn an_io_lane_that_ends_in_mid_body_is_an_error_that_names_it() {
    let _limit = support::time_limit();
    for backend in BOTH {
        let (server, _go) = half_a_body();
        let Lanes { cpu, io } = lanes(backend, 1);
        let mut response = sent(&cpu, &client(), server.url("/")).unwrap();
        let (head_is_read, wait) = tokio::sync::oneshot::channel::<()>();
        let reader = cpu.spawn(async move {
            let first = response.chunk().await.unwrap();
            drop(head_is_read);
            (first, response.bytes().await)
        });
        let _ = wait.blocking_recv();
        drop(io);
        let (first, rest) = reader.wait().unwrap();
        assert_eq!(first.unwrap(), "hello");
        let error = rest.unwrap_err();
        let bridge = bridge_error(&error);
        let bridge =
            bridge.unwrap_or_else(|| panic!("no BridgeError among the sources: {error:?}"));
        assert!(
            bridge.to_string().contains("the I/O lane stopped"),
            "{bridge}"
        );
        assert_eq!(bridge.sent(), 5);
    }
}
