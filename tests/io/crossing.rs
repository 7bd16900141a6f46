//! Is an answer that crossed the lanes the same as one that did not? What becomes of a request
//! whose job is busy, or dropped; and of one whose lane ends?

use std::error::Error;
use std::iter::successors;
use std::net::SocketAddr;
use std::sync::mpsc;

use crate::clients::{read, with_each};
use crate::server::{Server, silent_server, written_body};
use crate::stepped::wait;
use crate::support::{Lanes, Stuck};
use axum::Router;
use axum::body::Body as ServerBody;
use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use bytes::Bytes;
use http::{Request, Version};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, StreamBody};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::BoxError;
use twolane::io::BridgeError;
use twolane::io::DEFAULT_BODY_LIMIT;
use twolane::{JoinError, JoinErrorKind};

fn checksum() -> HeaderMap {
    HeaderMap::from_iter([("x-checksum".parse().unwrap(), "5d41".parse().unwrap())])
}

async fn chunked() -> ([(&'static str, &'static str); 1], ServerBody) {
    let frames = ["hello, ", "world"].map(|text| Ok(Frame::data(Bytes::from(text))));
    let end: [Result<_, std::io::Error>; 1] = [Ok(Frame::trailers(checksum()))];
    let frames = futures::stream::iter(frames.into_iter().chain(end));
    let body = ServerBody::new(StreamBody::new(frames));
    ([("trailer", "x-checksum")], body)
}

/// The error that it is, or comes from.
fn find<'a, E: Error + 'static>(error: &'a BoxError) -> Option<&'a E> {
    let error: &'a (dyn Error + 'static) = &**error;
    successors(Some(error), |error| (**error).source()).find_map(|error| error.downcast_ref())
}

#[test]
fn hints_ends_and_trailers_survive() {
    let server = Server::start(
        Router::new()
            .route("/plain", get(|| async { "hello" }))
            .route("/nothing", get(|| async { StatusCode::NO_CONTENT }))
            .route("/chunked", get(chunked)),
    );
    with_each(|Lanes { cpu, io: _io }, client| {
        let request = |path, method| {
            let request = Request::builder().uri(server.url(path)).method(method);
            let request = request.header("te", "trailers").body(Bytes::new());
            let answer = client.send(cpu.handle(), request.unwrap(), DEFAULT_BODY_LIMIT);
            cpu.spawn(answer).wait().unwrap().unwrap()
        };
        let mut plain = request("/plain", "GET").into_body();
        assert_eq!(plain.size_hint().exact(), Some(5));
        assert!(!plain.is_end_stream());
        let frame = wait(plain.frame()).unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "hello");
        assert_eq!(plain.size_hint().exact(), Some(0));
        assert!(wait(plain.frame()).is_none());
        assert!(plain.is_end_stream());

        let nothing = request("/nothing", "GET");
        assert_eq!(nothing.status(), StatusCode::NO_CONTENT);
        assert!(nothing.body().is_end_stream());
        assert_eq!(nothing.body().size_hint().exact(), Some(0));
        let head = request("/plain", "HEAD");
        assert_eq!(head.headers()["content-length"], "5");
        assert!(wait(head.collect()).unwrap().to_bytes().is_empty());

        let chunked = request("/chunked", "GET").into_body();
        assert_eq!(chunked.size_hint().upper(), None);
        let whole = wait(chunked.collect()).unwrap();
        assert_eq!(whole.trailers(), Some(&checksum()));
        assert_eq!(whole.to_bytes(), "hello, world");
    });
}

/// To the server and back, larger than every buffer on its way, with the smallest bound and a large.
/// Clients size their buffers, and servers their `content-length`, by the hint.
#[test]
fn a_big_body_arrives_byte_for_byte() {
    let numbers = (0..8 << 20_u32).map(|n: u32| (n % 251) as u8);
    let big = Bytes::from(numbers.collect::<Vec<_>>());
    let echo = post(|body: Bytes| async { body }).layer(DefaultBodyLimit::disable());
    let server = Server::start(Router::new().route("/echo", echo));
    with_each(|Lanes { cpu, io: _io }, client| {
        for limit in [0, DEFAULT_BODY_LIMIT, usize::MAX] {
            let request = Request::post(server.url("/echo")).body(big.clone());
            let answer = client.send(cpu.handle(), request.unwrap(), limit);
            let answer = cpu.spawn(answer).wait().unwrap();
            let mut body = answer.unwrap().into_body();
            assert_eq!(body.size_hint().exact(), Some(big.len() as u64));
            let first = wait(body.frame()).unwrap().unwrap().into_data().unwrap();
            let (head, tail) = big.split_at(first.len());
            assert_eq!(body.size_hint().exact(), Some(tail.len() as u64));
            assert!(!body.is_end_stream());
            let rest = cpu.spawn(body.collect()).wait().unwrap();
            let rest = rest.unwrap().to_bytes();
            assert!(first == head && rest == tail, "limit {limit}");
        }
    });
}

/// The reason for both. The job has polled its request once; then its lane's only thread is taken,
/// and the server answers. Measured on one runtime: a client's timeout fired 20 of 20 times though
/// the server had answered in time. What there is to be read meanwhile is more than the sockets
/// hold.
#[test]
fn a_request_goes_on_and_its_body_is_read_ahead_while_the_lane_is_busy() {
    const CHUNK: usize = 64 * 1024;
    let (asked, mut answers) = tokio::sync::mpsc::channel(1);
    let endless = |State(asked): State<tokio::sync::mpsc::Sender<_>>| async move {
        let (answer, body) = tokio::sync::oneshot::channel::<ServerBody>();
        asked.send(answer).await.unwrap();
        body.await.unwrap()
    };
    let router = Router::new().route("/", get(endless));
    let server = Server::start(router.with_state(asked));
    with_each(|Lanes { cpu, io: _io }, client| {
        let request = Request::get(server.url("/")).body(Bytes::new()).unwrap();
        let mut answer = client.send(cpu.handle(), request, 32 << 20);
        let started = cpu.spawn(async move {
            assert!(futures::poll!(&mut answer).is_pending());
            [answer]
        });
        let [answer] = started.wait().unwrap();
        let stuck = Stuck::start(cpu.handle());
        let answered = answers.blocking_recv().unwrap();
        let (writer, body) = written_body();
        answered.send(body).unwrap();
        for _ in 0..(24 << 20) / CHUNK {
            let chunk = Ok(Bytes::from(vec![7; CHUNK]));
            writer.blocking_send(chunk).unwrap();
        }
        stuck.end();
        drop(writer);
        let body = cpu.spawn(read(answer)).wait().unwrap();
        assert_eq!(body.unwrap().len(), 24 << 20);
    });
}

/// Five of ten bytes must not look like a body.
#[test]
fn a_server_that_dies_in_mid_body_is_the_client_s_own_error() {
    let server = Server::raw(|mut stream| async move {
        assert_ne!(stream.read(&mut [0; 1024]).await.unwrap(), 0);
        let half = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello";
        stream.write_all(half).await.unwrap();
    });
    with_each(|Lanes { cpu, io: _io }, client| {
        let answer = read(client.get(cpu.handle(), server.url("/")));
        let error = cpu.spawn(answer).wait().unwrap().unwrap_err();
        assert!(find::<hyper::Error>(&error).is_some(), "{error:?}");
        assert!(find::<BridgeError>(&error).is_none(), "{error:?}");
    });
}

/// Neither in HTTP/1.1 nor in HTTP/2 has the body a length: its end would look as good as any.
/// `object_store`'s `SpawnService` returns `Ok` there.
#[test]
fn an_io_lane_that_ends_in_mid_body_is_an_error_that_names_it() {
    let (to_test, mut writers) = tokio::sync::mpsc::unbounded_channel();
    let begun = get(move || {
        let (writer, body) = written_body();
        writer.try_send(Ok(Bytes::from("hello"))).unwrap();
        to_test.send(writer).unwrap();
        async { body }
    });
    let server = Server::start(Router::new().route("/", begun));
    with_each(|Lanes { cpu, io }, client| {
        let answer = client.get(cpu.handle(), server.url("/"));
        let (first_is_read, ready) = mpsc::channel();
        // Not in a job: the lane ends with its I/O runtime.
        let reader = std::thread::spawn(|| {
            wait(async move {
                let mut body = answer.await.unwrap().into_body();
                let first = body.frame().await.unwrap().unwrap();
                assert_eq!(first.into_data().unwrap(), "hello");
                first_is_read.send(()).unwrap();
                body.collect().await
            })
        });
        let _writer = writers.blocking_recv().unwrap();
        ready.recv().unwrap();
        drop(io);
        let error = reader.join().unwrap().unwrap_err();
        let lost = find::<BridgeError>(&error).unwrap_or_else(|| panic!("{error:?}"));
        let text = lost.to_string();
        assert!(text.contains("cut short after 5 bytes: "), "{text}");
        assert!(text.contains("the I/O lane stopped"), "{text}");
        assert_eq!((lost.sent(), lost.is_panic()), (5, false));
    });
}

#[test]
fn a_request_without_an_answer_tells_that_its_io_lane_ended() {
    let (server, requests, _given_up) = silent_server();
    with_each(|Lanes { cpu, io }, client| {
        let ask = || client.get(cpu.handle(), server.url("/"));
        let waits = cpu.spawn(ask());
        requests.recv().unwrap();
        drop(io);
        // The second one finds no lane.
        for end in [
            waits.wait().unwrap_or_else(|lost| Err(lost.into())),
            wait(ask()),
        ] {
            let error = end.unwrap_err();
            let gone = find::<JoinError>(&error)
                .is_some_and(|error| error.kind() == JoinErrorKind::IoRuntimeGone);
            assert!(gone, "{error:?}");
        }
    });
}

/// A `select!` or timeout around a request must free the server of it, and a download without a
/// reader must not go on for ever.
#[test]
fn dropping_the_future_stops_the_request_and_dropping_the_body_the_download() {
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
    with_each(|Lanes { cpu, io: _io }, client| {
        let job = cpu.spawn(client.get(cpu.handle(), silent.url("/")));
        requests.recv().unwrap();
        drop(job);
        given_up.recv().unwrap();

        let answer = client.get(cpu.handle(), server.url("/endless"));
        let job = cpu.spawn(async {
            let mut answer = answer.await.unwrap();
            answer.body_mut().frame().await.unwrap().unwrap();
        });
        job.wait().unwrap();
        stop.recv().unwrap();
    });
}

/// There is nothing in it that needs the CPU lane, and the connection of a job's request is not its:
/// it would die with that lane.
#[test]
fn a_shut_down_cpu_lane_leaves_the_client_and_its_connection_to_the_io_lane() {
    let port = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.port().to_string() };
    let server = Server::start(Router::new().route("/", get(port)));
    with_each(|Lanes { cpu, io }, client| {
        let ask = || {
            let answer = client.get(cpu.handle(), server.url("/"));
            async {
                let answer = answer.await.unwrap();
                let version = answer.version();
                let body = answer.into_body().collect().await.unwrap().to_bytes();
                let port = String::from_utf8(body.to_vec()).unwrap();
                (version, port.parse::<u16>().unwrap())
            }
        };
        let (version, port) = cpu.spawn(ask()).wait().unwrap();
        cpu.shutdown().wait();
        let (_, again) = io.block_on(io.spawn(ask())).unwrap();
        let last = ask();
        drop(cpu);
        let (_, last) = wait(last);
        // In HTTP/1.1 it may be on its way back to the pool, so that another one is opened.
        if version == Version::HTTP_2 {
            assert_eq!([again, last], [port; 2], "the same connection");
        }
    });
}
