//! A tonic channel under `IoLayer`: calls, streams and what ends them arrive in
//! a CPU job as they do without the layer; and if the I/O lane ends them, the
//! status tells the reason.

use std::sync::mpsc;
use std::thread;

use axum::Router;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tower::Layer;
use twolane::io::BridgeError;
use twolane::io::{IoLayer, IoService};
use twolane::{CpuRuntime, JoinError, JoinErrorKind};
use twolane_grpc as grpc;

use crate::server::Server;
use crate::service::source;
use crate::stepped::wait;
use crate::support::{Lanes, Stuck, lanes};

/// A channel as a job would make it: its tasks belong to the I/O lane.
pub(crate) fn channel(cpu: &CpuRuntime, url: String) -> Channel {
    let endpoint = Endpoint::from_shared(url).unwrap();
    let make = async move { endpoint.connect_lazy() };
    cpu.handle().without_limit().spawn(make).wait().unwrap()
}

fn layered(cpu: &CpuRuntime, server: &Server) -> IoService<Channel> {
    IoLayer::new(cpu.handle()).layer(channel(cpu, server.url("")))
}

fn numbers(n: u8) -> stream::BoxStream<'static, Result<Bytes, Status>> {
    stream::iter(0..n).map(|n| Ok(Bytes::from(vec![n]))).boxed()
}

fn service() -> Server {
    let echo = grpc::unary(|message| async { Ok(message) });
    let missing = grpc::unary(|_| async { Err(Status::not_found("no such row: 7")) });
    let count = grpc::server_streaming(|message| numbers(message[0]));
    let torn = grpc::server_streaming(|message| {
        let end = stream::iter([Err(Status::data_loss("a page is torn"))]);
        numbers(message[0]).chain(end).boxed()
    });
    Server::start(
        Router::new()
            .route("/test/echo", echo)
            .route("/test/missing", missing)
            .route("/test/count", count)
            .route("/test/torn", torn),
    )
}

/// All that came, and how it ended.
async fn read(
    service: IoService<Channel>,
    path: &'static str,
    n: u8,
) -> (Vec<u8>, Result<(), Status>) {
    let mut items = Vec::new();
    let read = async {
        let mut answers = grpc::stream(service, path, Bytes::from(vec![n])).await?;
        while let Some(item) = answers.message().await? {
            items.push(item[0]);
        }
        Ok(())
    };
    let end = read.await;
    (items, end)
}

#[test]
fn calls_and_streams_come_whole() {
    let server = service();
    let Lanes { cpu, io: _io } = lanes(1);
    let service = layered(&cpu, &server);
    // Larger than a frame, smaller than tonic's own limit.
    let long = Bytes::from((0..3 << 20_u32).map(|n| n as u8).collect::<Vec<_>>());
    let echoed = cpu.spawn(grpc::call(service.clone(), "/test/echo", long.clone()));
    assert!(echoed.wait().unwrap().unwrap() == long);
    let (items, end) = cpu.spawn(read(service, "/test/count", 200)).wait().unwrap();
    assert_eq!(items, (0..200).collect::<Vec<u8>>());
    end.unwrap();
}

/// Of a call it is in the head, of a stream in the trailers.
#[test]
fn the_server_s_status_arrives_as_that_status() {
    let server = service();
    let Lanes { cpu, io: _io } = lanes(1);
    let service = layered(&cpu, &server);
    let call = cpu.spawn(grpc::call(service.clone(), "/test/missing", Bytes::new()));
    let status = call.wait().unwrap().unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(status.message(), "no such row: 7");

    let (items, end) = cpu.spawn(read(service, "/test/torn", 3)).wait().unwrap();
    assert_eq!(items, [0, 1, 2]);
    let status = end.unwrap_err();
    assert_eq!(status.code(), Code::DataLoss);
    assert_eq!(status.message(), "a page is torn");
}

/// tonic finds out by looking for its own error among the sources.
#[test]
fn a_server_that_is_not_there_is_unavailable_as_without_the_layer() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    let Lanes { cpu, io } = lanes(1);
    let bare = async {
        let channel = Endpoint::from_shared(url.clone()).unwrap().connect_lazy();
        grpc::call(channel, "/test/echo", Bytes::new()).await
    };
    let bare = io.block_on(bare).unwrap_err();
    assert_eq!(bare.code(), Code::Unavailable);
    let service = IoLayer::new(cpu.handle()).layer(channel(&cpu, url));
    let call = cpu.spawn(grpc::call(service, "/test/echo", Bytes::new()));
    let status = call.wait().unwrap().unwrap_err();
    assert_eq!(status.code(), bare.code());
    assert_eq!(status.message(), bare.message());
}

/// The answers are on this side before the job asks for the first: the server
/// has nothing left to send while the lane's only thread is taken.
#[test]
fn a_stream_is_read_ahead_while_the_lane_is_busy() {
    const CHUNK: usize = 64 * 1024;
    const CHUNKS: usize = (24 << 20) / CHUNK;
    let (sent, all_sent) = mpsc::channel();
    let (go, may_send) = tokio::sync::watch::channel(false);
    let dump = grpc::server_streaming(move |_| {
        let (sent, mut may_send) = (sent.clone(), may_send.clone());
        let begin = async move { may_send.wait_for(|go| *go).await.is_ok() };
        let chunks = stream::iter(0..CHUNKS).map(|_| Ok(Bytes::from(vec![7; CHUNK])));
        let end = stream::once(async move { sent.send(()).unwrap() });
        let quiet = stream::once(begin).filter_map(|_| async { None });
        let end = end.filter_map(|()| async { None });
        quiet.chain(chunks).chain(end).boxed()
    });
    let server = Server::start(Router::new().route("/test/dump", dump));
    let Lanes { cpu, io: _io } = lanes(1);
    let handle = cpu.handle().clone();
    let layer = IoLayer::new(&handle).body_limit(32 << 20);
    let service = layer.layer(channel(&cpu, server.url("")));
    let called = cpu.spawn(grpc::stream(service, "/test/dump", Bytes::new()));
    let mut answers = called.wait().unwrap().unwrap();
    let (stuck, let_go) = Stuck::start(&handle).split();
    go.send_replace(true);
    all_sent.recv().unwrap();
    let_go.send(()).unwrap();
    stuck.wait().unwrap();
    let count = cpu.spawn(async move {
        let mut bytes = 0;
        while let Some(chunk) = answers.message().await.unwrap() {
            bytes += chunk.len();
        }
        bytes
    });
    assert_eq!(count.wait().unwrap(), CHUNK * CHUNKS);
}

/// Of a stream that was cut short, of a call without an answer, and of one that comes later.
#[test]
fn a_status_tells_that_the_io_lane_ended() {
    let (asked, requests) = mpsc::channel();
    let silent = grpc::unary(move |_| {
        asked.send(()).unwrap();
        std::future::pending()
    });
    let two = grpc::server_streaming(|_| numbers(2).chain(stream::pending()).boxed());
    let router = Router::new().route("/test/silent", silent);
    let server = Server::start(router.route("/test/two", two));
    let Lanes { cpu, io } = lanes(1);
    let service = layered(&cpu, &server);
    let ask = || grpc::call(service.clone(), "/test/silent", Bytes::new());
    let (two_are_read, ready) = mpsc::channel();
    // Not in jobs: the lane ends with its I/O runtime.
    let streamed = grpc::stream(service.clone(), "/test/two", Bytes::new());
    let reader = thread::spawn(|| {
        wait(async move {
            let mut answers = streamed.await.unwrap();
            for n in 0..2 {
                assert_eq!(answers.message().await.unwrap().unwrap(), vec![n]);
            }
            two_are_read.send(()).unwrap();
            answers.message().await
        })
    });
    let asks = ask();
    let asks = thread::spawn(|| wait(asks));
    ready.recv().unwrap();
    requests.recv().unwrap();
    drop(io);
    let status = reader.join().unwrap().unwrap_err();
    assert!(
        status.message().contains("the I/O lane stopped"),
        "{status:?}"
    );
    source::<BridgeError>(&status);
    for answer in [asks.join().unwrap(), wait(ask())] {
        let status = answer.unwrap_err();
        assert!(status.message().contains("I/O runtime"), "{status:?}");
        let cause = source::<JoinError>(&status);
        assert_eq!(cause.kind(), JoinErrorKind::IoRuntimeGone);
    }
}
