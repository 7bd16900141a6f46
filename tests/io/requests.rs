//! What becomes of a request whose job is dropped, or busy; and of one that
//! has no lane to go to.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::server::{Server, client, h2_client, poll_once, silent_server, written_body};
use crate::support::{self, BOTH, Lanes, lanes};
use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use tokio::sync::Semaphore;
use twolane::io::SendIoError;
use twolane::{Backend, RequestBuilderExt};

fn hello() -> Server {
    Server::start(Router::new().route("/", get(|| async { "hello" })))
}

/// A download without a reader must not go on for ever.
#[test]
fn dropping_the_response_stops_the_download() {
    let _limit = support::time_limit();
    let (bodies, mut writers) = tokio::sync::mpsc::unbounded_channel();
    let endless = get(move || {
        let (writer, body) = written_body();
        bodies.send(writer).unwrap();
        async { body }
    });
    let server = Server::start(Router::new().route("/endless", endless));
    for client in [client(), h2_client()] {
        let Lanes { cpu, io: _io } = lanes(Backend::Rayon, 1);
        let (stopped, stop) = mpsc::channel();
        let request = client.get(server.url("/endless"));
        let response = cpu.spawn(async { request.send_io().await });
        let mut response = response.wait().unwrap().unwrap();
        let writer = writers.blocking_recv().unwrap();
        server.spawn(async move {
            let chunk = Bytes::from(vec![7; 64 * 1024]);
            while writer.send(Ok(chunk.clone())).await.is_ok() {}
            stopped.send(()).unwrap();
        });
        let (chunk, response) = cpu
            .spawn(async { (response.chunk().await, response) })
            .wait()
            .unwrap();
        assert!(chunk.unwrap().is_some());
        drop(response);
        stop.recv().unwrap();
    }
}

/// A `select!` or timeout around a request must free the server of it.
#[test]
fn dropping_the_future_aborts_the_request() {
    let _limit = support::time_limit();
    let (server, requests, given_up) = silent_server();
    for backend in BOTH {
        for client in [client(), h2_client()] {
            let Lanes { cpu, io: _io } = lanes(backend, 1);
            let request = client.get(server.url("/"));
            let job = cpu.spawn(async { request.send_io().await.map(drop) });
            requests.recv().unwrap();
            drop(job);
            given_up.recv().unwrap();
        }
    }
}

#[test]
fn reqwest_s_own_errors_come_as_they_are() {
    let _limit = support::time_limit();
    let (server, _requests, _given_up) = silent_server();
    let Lanes { cpu, io: _io } = lanes(Backend::Runtime, 1);
    let request = client()
        .get(server.url("/"))
        .timeout(Duration::from_millis(50));
    let error = cpu
        .spawn(async { request.send_io().await })
        .wait()
        .unwrap()
        .unwrap_err();
    assert!(matches!(error, SendIoError::Request(_)));
    assert!(error.as_reqwest().unwrap().is_timeout(), "{error:?}");
}

/// Measured: a client's timeout fired 20 of 20 times though the server had
/// answered in time, because the thread that polled the request was busy. Here
/// the job's thread is taken for longer than the timeout allows.
#[test]
fn a_busy_job_does_not_time_its_own_request_out() {
    let _limit = support::time_limit();
    let may_answer = Arc::new(Semaphore::new(0));
    let gate = may_answer.clone();
    let answer = get(move || {
        let gate = gate.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            "hello"
        }
    });
    let server = Server::start(Router::new().route("/", answer));
    let patience = Duration::from_secs(1);
    for backend in BOTH {
        let Lanes { cpu, io: _io } = lanes(backend, 1);
        let request = client().get(server.url("/")).timeout(patience);
        let may_answer = may_answer.clone();
        let job = cpu.spawn(async move {
            let mut request = request.send_io().into_future();
            assert!(poll_once(&mut request).await.is_pending());
            may_answer.add_permits(1);
            let too_late = async move { tokio::time::sleep(patience * 5 / 4).await };
            twolane::spawn_io(too_late).wait().unwrap();
            request.await.unwrap().bytes().await
        });
        assert_eq!(job.wait().unwrap().unwrap(), "hello", "{backend:?}");
    }
}

/// Reading ahead is what the bound is for: 24 MiB are more than the sockets
/// and the server hold, so they are on this side while the job does not read.
#[test]
fn the_download_goes_on_while_its_reader_is_busy() {
    let _limit = support::time_limit();
    const CHUNK: usize = 64 * 1024;
    let (written, chunks) = mpsc::channel();
    let endless = get(move || {
        let written = written.clone();
        let (writer, body) = written_body();
        tokio::spawn(async move {
            while writer.send(Ok(Bytes::from(vec![7; CHUNK]))).await.is_ok() {
                let _ = written.send(());
            }
        });
        async { body }
    });
    let server = Server::start(Router::new().route("/endless", endless));
    let Lanes { cpu, io: _io } = lanes(Backend::Rayon, 1);
    let request = client().get(server.url("/endless"));
    let job = cpu.spawn(async move {
        let request = request.send_io().body_limit(32 << 20);
        let mut response = request.await.unwrap();
        // Busy: not even the other jobs have a thread.
        for _ in 0..(24 << 20) / CHUNK {
            chunks.recv().unwrap();
        }
        response.chunk().await.unwrap().unwrap()[0]
    });
    assert_eq!(job.wait().unwrap(), 7);
}

/// Where to send it is asked at the first poll; and said, if there is nowhere.
#[test]
fn it_needs_a_handle_and_the_io_lane() {
    let _limit = support::time_limit();
    let server = hello();
    let Lanes { cpu, io } = lanes(Backend::Rayon, 1);
    let handle = cpu.handle();
    let elsewhere = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let request = || client().get(server.url("/")).send_io();

    let error = elsewhere.block_on(request().into_future()).unwrap_err();
    assert!(
        matches!(error, SendIoError::NoCurrentHandle(_)),
        "{error:?}"
    );
    assert!(error.to_string().contains("Handle::enter"));

    // A runtime without any I/O of its own will do.
    let text = elsewhere.block_on(async { request().on(&handle).await.unwrap().text().await });
    assert_eq!(text.unwrap(), "hello");
    let before = request();
    let entered = handle.enter();
    let text = elsewhere.block_on(async { before.await.unwrap().text().await });
    assert_eq!(text.unwrap(), "hello");
    drop(entered);

    // Of the CPU lane it needs nothing.
    cpu.shutdown().wait();
    let text = elsewhere.block_on(async { request().on(&handle).await.unwrap().text().await });
    assert_eq!(text.unwrap(), "hello");
    drop(io);
    match elsewhere
        .block_on(request().on(&handle).into_future())
        .unwrap_err()
    {
        SendIoError::Join(error) => assert!(error.is_io_runtime_gone()),
        other => panic!("{other:?}"),
    }
}
