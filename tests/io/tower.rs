//! `IoLayer` and the service in it: readiness, the call and the response are the I/O lane's (and so
//! are the connections: `crossing.rs`), and errors arrive as they are. The layer waits on the I/O lane for whatever is inside of it; whatever is outside sees a
//! service that is always ready.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll};

use crate::clients::HyperClient;
use crate::stepped::wait;
use crate::support::{Dropped, Lanes, lanes, lasts, thread_name};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::TokioExecutor;
use tokio::sync::oneshot;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use twolane::io::IoLayer;
use twolane::{JoinError, JoinErrorKind};

type Answer = Response<Full<Bytes>>;

fn ask(url: &str) -> Request<Full<Bytes>> {
    Request::get(url).body(Full::default()).unwrap()
}

#[test]
fn the_client_s_own_error_arrives_as_it_is_and_a_panic_as_one() {
    let Lanes { cpu, io: _io } = lanes(1);
    let layer = IoLayer::new(cpu.handle());
    let client: HyperClient = Client::builder(TokioExecutor::new()).build_http();
    // Port 1: no server is there.
    let job = cpu.spawn(layer.layer(client).oneshot(ask("http://127.0.0.1:1/")));
    let error = job.wait().unwrap().unwrap_err();
    let own = error.downcast_ref::<legacy::Error>();
    assert!(own.unwrap().is_connect(), "{error:?}");

    let broken = tower::service_fn(|_| {
        assert_eq!(thread_name(), "io");
        async {
            assert_eq!(thread_name(), "io");
            panic!("the client is broken");
            #[allow(unreachable_code, reason = "it says what the panic is instead of")]
            Ok::<Answer, Infallible>(Answer::default())
        }
    });
    let job = cpu.spawn(layer.layer(broken).oneshot(ask("/")));
    let error = job.wait().unwrap().unwrap_err();
    let panic = error.downcast_ref::<JoinError>().unwrap();
    assert!(panic.is_panic());
    assert!(panic.to_string().contains("the client is broken"));
}

/// A service that is ready when the function says so, and that is not to be called.
#[derive(Clone)]
struct Ready<F>(F);

impl<F: FnMut(&mut Context<'_>) -> Poll<io::Result<()>>> Service<Request<()>> for Ready<F> {
    type Response = Answer;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<Answer>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (self.0)(cx)
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        unreachable!("it was never ready");
    }
}

#[test]
fn a_service_that_says_no_is_not_called_and_its_error_arrives() {
    let Lanes { cpu, io: _io } = lanes(1);
    let says_no = Ready(|_: &mut Context<'_>| {
        assert_eq!(thread_name(), "io");
        Poll::Ready(Err(io::Error::other("never again")))
    });
    let service = IoLayer::new(cpu.handle()).layer(says_no);
    let job = cpu.spawn(service.oneshot(Request::new(())));
    let error = job.wait().unwrap().unwrap_err();
    let own = error.downcast_ref::<io::Error>().unwrap();
    assert_eq!(own.to_string(), "never again");
}

/// A waiter that gives up leaves the queue.
#[test]
fn dropping_the_future_ends_the_wait_for_readiness() {
    let Lanes { cpu, io: _io } = lanes(1);
    let (asked, asks) = mpsc::channel();
    let (dropped, dropped_on) = mpsc::channel();
    // Of the instance that is asked, which is a clone.
    let guard = Arc::new(Dropped(dropped));
    let never = Ready(move |_: &mut Context<'_>| {
        let _ = &guard;
        asked.send(()).unwrap();
        Poll::Pending
    });
    let mut service = IoLayer::new(cpu.handle()).layer(never);
    let response = service.call(Request::new(()));
    drop(service);
    asks.recv().unwrap();
    drop(response);
    assert_eq!(dropped_on.recv().unwrap(), "io");
}

/// tonic's channel and tower's buffer have a worker, and say "closed" once that
/// is gone. If the whole lane goes, that is the truth to tell.
#[test]
fn a_service_whose_worker_went_with_the_io_lane_is_not_blamed() {
    let Lanes { cpu, io } = lanes(1);
    let (dropped, worker_gone) = mpsc::channel();
    let (works, polled) = lasts(Dropped(dropped));
    io.spawn(works);
    polled.recv().unwrap();
    let (asked, asks) = mpsc::channel();
    let worker_gone = Arc::new(Mutex::new(worker_gone));
    let closed = Ready(move |_: &mut Context<'_>| {
        asked.send(()).unwrap();
        // On the other thread of the lane, which ends the runtime.
        worker_gone.lock().unwrap().recv().unwrap();
        Poll::Ready(Err(io::Error::other("closed")))
    });
    let mut service = IoLayer::new(cpu.handle()).layer(closed);
    let response = service.call(Request::new(()));
    asks.recv().unwrap();
    io.shutdown_background();
    let error = wait(response).unwrap_err();
    let lost = error.downcast_ref::<JoinError>();
    let lost = lost.unwrap_or_else(|| panic!("{error:?}"));
    assert_eq!(lost.kind(), JoinErrorKind::IoRuntimeGone);
}

/// tower's limit panics when an instance is called that was not ready itself. All three requests are
/// accepted at once and wait on the I/O lane: no thread of the CPU lane polls their responses
/// meanwhile.
#[test]
fn a_limit_inside_shows_in_the_delay_and_not_in_poll_ready() {
    let Lanes { cpu, io: _io } = lanes(1);
    let (called, calls) = mpsc::channel();
    let service = tower::service_fn(move |_: Request<()>| {
        let (answer, answered) = oneshot::channel();
        called.send(answer).unwrap();
        answered
    });
    let mut service = ServiceBuilder::new()
        .layer(IoLayer::new(cpu.handle()))
        .concurrency_limit(1)
        .service(service);
    let started = cpu.spawn(async move {
        let mut responses = Vec::new();
        for _ in 0..3 {
            let ready = poll_fn(|cx| Poll::Ready(service.poll_ready(cx))).await;
            assert!(ready.is_ready());
            responses.push(service.call(Request::new(())));
        }
        responses
    });
    let responses = started.wait().unwrap();
    for _ in 0..3 {
        let answer = calls.recv().unwrap();
        assert!(calls.try_recv().is_err(), "two at once");
        answer.send(Answer::default()).unwrap();
    }
    for response in responses {
        cpu.spawn(response).wait().unwrap().unwrap();
    }
}
