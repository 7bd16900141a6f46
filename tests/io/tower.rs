//! HTTP clients under `IoLayer`, real ones on real servers: all of a request
//! runs on the I/O lane, and what comes back is what the client gave.

use std::convert::Infallible;
use std::error::Error as _;
use std::sync::mpsc;

use crate::server::{Server, poll_once, silent_server, written_body};
use crate::stepped::wait;
use crate::support::{self, BOTH, Lanes, Stuck, lanes};
use crate::watched::{Threads, Watched};
use axum::Router;
use axum::body::Body as ServerBody;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::{BoxError, Layer, Service, ServiceExt};
use twolane::io::IoLayer;
use twolane::{Backend, BridgeError, JoinError};

type HyperClient = Client<HttpConnector, Full<Bytes>>;

/// One for HTTP/1.1, one for HTTP/2.
fn clients() -> [HyperClient; 2] {
    [false, true].map(|h2| {
        let mut builder = Client::builder(TokioExecutor::new());
        builder.http2_only(h2).build_http()
    })
}

fn ask(url: String) -> Request<Full<Bytes>> {
    Request::get(url).body(Full::default()).unwrap()
}

/// The body of the response to a `GET`.
async fn text<S, B>(client: S, url: String) -> Result<Bytes, BoxError>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError>,
    B: Body<Error = BoxError>,
{
    let response = client.oneshot(ask(url)).await?;
    Ok(response.into_body().collect().await?.to_bytes())
}

fn checksum() -> HeaderMap {
    HeaderMap::from_iter([("x-checksum".parse().unwrap(), "5d41".parse().unwrap())])
}

async fn chunked() -> (HeaderMap, ServerBody) {
    let frames = ["hello, ", "world"].map(|text| Ok(Frame::data(Bytes::from(text))));
    let end: [Result<_, std::io::Error>; 1] = [Ok(Frame::trailers(checksum()))];
    let frames = futures::stream::iter(frames.into_iter().chain(end));
    let head = HeaderMap::from_iter([("trailer".parse().unwrap(), "x-checksum".parse().unwrap())]);
    (head, ServerBody::new(StreamBody::new(frames)))
}

fn pages() -> Server {
    let doubled = |body: Bytes| async move { [&body[..], &body[..]].concat() };
    Server::start(
        Router::new()
            .route("/plain", get(|| async { "hello" }))
            .route("/nothing", get(|| async { StatusCode::NO_CONTENT }))
            .route("/chunked", get(chunked))
            .route("/double", post(doubled)),
    )
}

/// Readiness, the call, each poll of the response, and the connections with
/// their drivers, which the client starts by its executor.
#[test]
fn request_and_body_come_whole_and_all_of_it_runs_on_the_io_lane() {
    let _limit = support::time_limit();
    let server = pages();
    // Under the limit of axum's extractor, over every buffer on the way.
    let long = Bytes::from((0..1 << 20_u32).map(|n| n as u8).collect::<Vec<_>>());
    for (backend, h2) in BOTH.into_iter().flat_map(|on| [(on, false), (on, true)]) {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let threads = Threads::default();
        let client: HyperClient = Client::builder(threads.clone()).http2_only(h2).build_http();
        let client = IoLayer::new(&cpu.handle()).layer(Watched::new(client, &threads));
        for _ in 0..3 {
            let request = Request::post(server.url("/double"));
            let request = request.body(Full::new(long.clone())).unwrap();
            let client = client.clone();
            let job = cpu.spawn(async move {
                let response = client.oneshot(request).await.unwrap();
                assert_eq!(response.status(), StatusCode::OK);
                response.into_body().collect().await.unwrap().to_bytes()
            });
            let double = [&long[..], &long[..]].concat();
            assert!(job.wait().unwrap() == double, "{backend:?}");
        }
        let steps = ["poll_ready", "call", "response", "spawn", "task"];
        let all_on_io = steps.map(|step| (step, "io".to_owned()));
        assert_eq!(threads.seen(), all_on_io.into(), "{backend:?}, h2: {h2}");
    }
}

/// The reason for the layer. The job has polled its request once; then its
/// lane's only thread is taken, and the server answers. What is there to
/// be read meanwhile is more than the sockets hold.
#[test]
fn a_request_goes_on_and_its_body_is_read_ahead_while_the_lane_is_busy() {
    let _limit = support::time_limit();
    const CHUNK: usize = 64 * 1024;
    let (asked, mut answers) = tokio::sync::mpsc::channel(1);
    let endless = |State(asked): State<tokio::sync::mpsc::Sender<_>>| async move {
        let (answer, body) = tokio::sync::oneshot::channel::<ServerBody>();
        asked.send(answer).await.unwrap();
        body.await.unwrap()
    };
    let router = Router::new().route("/", get(endless));
    let server = Server::start(router.with_state(asked));
    for backend in BOTH {
        for client in clients() {
            let Lanes { cpu, io: _io } = lanes(backend, 1);
            let layer = IoLayer::new(&cpu.handle()).body_limit(32 << 20);
            let mut client = layer.layer(client);
            let request = ask(server.url("/"));
            let started = cpu.spawn(async move {
                let mut response = client.call(request);
                assert!(poll_once(&mut response).await.is_pending());
                [response]
            });
            let [response] = started.wait().unwrap();
            let (stuck, let_go) = Stuck::start(&cpu.handle()).split();
            let answer = answers.blocking_recv().unwrap();
            let (writer, body) = written_body();
            answer.send(body).unwrap();
            for _ in 0..(24 << 20) / CHUNK {
                let chunk = Ok(Bytes::from(vec![7; CHUNK]));
                writer.blocking_send(chunk).unwrap();
            }
            let_go.send(()).unwrap();
            stuck.wait().unwrap();
            drop(writer);
            let job = cpu.spawn(async { response.await.unwrap().into_body().collect().await });
            let body = job.wait().unwrap().unwrap().to_bytes();
            assert_eq!(body.len(), 24 << 20, "{backend:?}");
        }
    }
}

#[test]
fn hints_ends_and_trailers_survive() {
    let _limit = support::time_limit();
    let server = pages();
    let Lanes { cpu, io: _io } = lanes(Backend::Rayon, 1);
    for client in clients() {
        let client = IoLayer::new(&cpu.handle()).layer(client);
        let request = |path| wait(client.clone().oneshot(ask(server.url(path)))).unwrap();

        let mut plain = request("/plain").into_body();
        assert_eq!(plain.size_hint().exact(), Some(5));
        assert!(!plain.is_end_stream());
        let frame = wait(plain.frame()).unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "hello");
        assert_eq!(plain.size_hint().exact(), Some(0));
        assert!(wait(plain.frame()).is_none());
        assert!(plain.is_end_stream());

        let nothing = request("/nothing").into_body();
        assert!(nothing.is_end_stream());
        assert_eq!(nothing.size_hint().exact(), Some(0));

        let mut te = ask(server.url("/chunked"));
        te.headers_mut().insert("te", "trailers".parse().unwrap());
        let chunked = wait(client.clone().oneshot(te)).unwrap().into_body();
        assert_eq!(chunked.size_hint().upper(), None);
        let whole = wait(chunked.collect()).unwrap();
        assert_eq!(whole.trailers(), Some(&checksum()));
        assert_eq!(whole.to_bytes(), "hello, world");
    }
}

#[test]
fn the_client_s_own_errors_arrive_as_they_are() {
    let _limit = support::time_limit();
    // Announces ten bytes, and sends five.
    let server = Server::raw(|mut stream| async move {
        assert_ne!(stream.read(&mut [0; 1024]).await.unwrap(), 0);
        let half = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello";
        stream.write_all(half).await.unwrap();
    });
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let [client, _] = clients();
        let client = IoLayer::new(&cpu.handle()).layer(client);

        let job = cpu.spawn(text(client.clone(), server.url("/")));
        let error = job.wait().unwrap().unwrap_err();
        let own = error.downcast_ref::<hyper::Error>().unwrap();
        let cause = own.source().unwrap().downcast_ref::<std::io::Error>();
        assert_eq!(cause.unwrap().kind(), std::io::ErrorKind::UnexpectedEof);

        // Port 1: no server is there.
        let job = cpu.spawn(text(client, "http://127.0.0.1:1/".into()));
        let error = job.wait().unwrap().unwrap_err();
        let own = error.downcast_ref::<hyper_util::client::legacy::Error>();
        assert!(own.unwrap().is_connect(), "{error:?}");
    }
}

/// Neither in HTTP/1.1 nor in HTTP/2 has the body a length: its end would look
/// as good as any.
#[test]
fn an_io_lane_that_ends_in_mid_body_is_an_error_that_names_it() {
    let _limit = support::time_limit();
    let (to_test, mut writers) = tokio::sync::mpsc::unbounded_channel();
    let begun = get(move || {
        let (writer, body) = written_body();
        writer.try_send(Ok(Bytes::from("hello"))).unwrap();
        to_test.send(writer).unwrap();
        async { body }
    });
    let server = Server::start(Router::new().route("/", begun));
    for backend in BOTH {
        for client in clients() {
            let Lanes { cpu, io } = lanes(backend, 1);
            let client = IoLayer::new(&cpu.handle()).layer(client);
            let request = ask(server.url("/"));
            let (first_is_read, ready) = mpsc::channel();
            let reader = cpu.spawn(async move {
                let response = client.oneshot(request).await.unwrap();
                let mut body = response.into_body();
                let first = body.frame().await.unwrap().unwrap();
                assert_eq!(first.into_data().unwrap(), "hello");
                first_is_read.send(()).unwrap();
                body.collect().await
            });
            let _writer = writers.blocking_recv().unwrap();
            ready.recv().unwrap();
            drop(io);
            let error = reader.wait().unwrap().unwrap_err();
            let lost = error.downcast_ref::<BridgeError>();
            let lost = lost.unwrap_or_else(|| panic!("{backend:?}: {error:?}"));
            assert!(lost.to_string().contains("the I/O lane stopped"), "{lost}");
            assert_eq!(lost.sent(), 5);
        }
    }
}

#[test]
fn a_request_without_an_answer_tells_that_its_io_lane_ended_or_panicked() {
    let _limit = support::time_limit();
    let (server, requests, _given_up) = silent_server();
    let gone = |error: BoxError| {
        error
            .downcast_ref()
            .is_some_and(JoinError::is_io_runtime_gone)
    };
    for backend in BOTH {
        for client in clients() {
            let Lanes { cpu, io } = lanes(backend, 1);
            let layer = IoLayer::new(&cpu.handle());
            let broken = tower::service_fn(|_| async {
                assert_eq!(support::thread_name(), "io");
                panic!("the client is broken");
                #[allow(unreachable_code, reason = "it says what the panic is instead of")]
                Ok::<Response<Full<Bytes>>, Infallible>(Response::default())
            });
            let job = cpu.spawn(layer.layer(broken).oneshot(ask(server.url("/"))));
            let error = job.wait().unwrap().unwrap_err();
            let panic = error.downcast_ref::<JoinError>().unwrap();
            assert!(panic.is_panic());
            assert!(
                panic.to_string().contains("the client is broken"),
                "{panic}"
            );

            let client = layer.layer(client);
            let job = cpu.spawn(text(client.clone(), server.url("/")));
            requests.recv().unwrap();
            drop(io);
            assert!(gone(job.wait().unwrap().unwrap_err()), "{backend:?}");
            assert!(gone(wait(text(client, server.url("/"))).unwrap_err()));
        }
    }
}

#[test]
fn dropping_the_future_stops_the_request_and_dropping_the_body_the_download() {
    let _limit = support::time_limit();
    let (silent, requests, given_up) = silent_server();
    let (stopped, stop) = mpsc::channel();
    let endless = get(move || {
        let (writer, body) = written_body();
        let stopped = stopped.clone();
        tokio::spawn(async move {
            let chunk = Bytes::from(vec![7; 64 * 1024]);
            while writer.send(Ok(chunk.clone())).await.is_ok() {}
            stopped.send(()).unwrap();
        });
        async { body }
    });
    let server = Server::start(Router::new().route("/endless", endless));
    for backend in BOTH {
        for client in clients() {
            let Lanes { cpu, io: _io } = lanes(backend, 1);
            let client = IoLayer::new(&cpu.handle()).layer(client);
            let job = cpu.spawn(text(client.clone(), silent.url("/")));
            requests.recv().unwrap();
            drop(job);
            given_up.recv().unwrap();

            let request = ask(server.url("/endless"));
            let job = cpu.spawn(async {
                let mut response = client.oneshot(request).await.unwrap();
                response.body_mut().frame().await.unwrap().unwrap();
            });
            job.wait().unwrap();
            stop.recv().unwrap();
        }
    }
}

/// There is nothing in it that needs the CPU lane.
#[test]
fn a_shut_down_cpu_lane_leaves_the_client_to_the_io_lane() {
    let _limit = support::time_limit();
    let server = pages();
    for backend in BOTH {
        let Lanes { cpu, io } = lanes(backend, 1);
        let [client, _] = clients();
        let client = IoLayer::new(&cpu.handle()).layer(client);
        cpu.shutdown().wait();
        let there = io.spawn(text(client.clone(), server.url("/plain")));
        assert_eq!(io.block_on(there).unwrap().unwrap(), "hello");
        drop(cpu);
        assert_eq!(wait(text(client, server.url("/plain"))).unwrap(), "hello");
    }
}
