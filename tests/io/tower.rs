//! `IoLayer` and the service in it: all of a request runs on the I/O lane, and errors arrive as they
//! are. The layer waits on the I/O lane for whatever is inside of it; whatever is outside sees a
//! service that is always ready.

use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll};

use crate::clients::HyperClient;
use crate::server::{Server, poll_once};
use crate::stepped::wait;
use crate::support::{Dropped, Lanes, Stuck, lanes, lasts, thread_name, time_limit};
use crate::watched::{Threads, Watched};
use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::TokioExecutor;
use tokio::sync::{oneshot, watch};
use tower::util::BoxCloneService;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use twolane::io::IoLayer;
use twolane::{JoinError, JoinErrorKind};

type Answer = Response<Full<Bytes>>;

fn ask(url: &str) -> Request<Full<Bytes>> {
    Request::get(url).body(Full::default()).unwrap()
}

/// Readiness, the call, each poll of the response, and the connections with
/// their drivers, which the client starts by its executor.
#[test]
fn request_and_body_come_whole_and_all_of_it_runs_on_the_io_lane() {
    let doubled = |body: Bytes| async move { [&body[..], &body[..]].concat() };
    let server = Server::start(Router::new().route("/double", post(doubled)));
    // Under the limit of axum's extractor, over every buffer on the way.
    let long = Bytes::from((0..1 << 20_u32).map(|n| n as u8).collect::<Vec<_>>());
    let double = [&long[..], &long[..]].concat();
    let run = |Lanes { cpu, io: _io }, h2| {
        let threads = Threads::default();
        let client: HyperClient = Client::builder(threads.clone()).http2_only(h2).build_http();
        let client = IoLayer::new(cpu.handle()).layer(Watched::new(client, &threads));
        for _ in 0..3 {
            let request = Request::post(server.url("/double"));
            let request = request.body(Full::new(long.clone())).unwrap();
            let client = client.clone();
            let job = cpu.spawn(async move {
                let response = client.oneshot(request).await.unwrap();
                assert_eq!(response.status(), StatusCode::OK);
                response.into_body().collect().await.unwrap().to_bytes()
            });
            assert!(job.wait().unwrap() == double);
        }
        let steps = ["poll_ready", "call", "response", "spawn", "task"];
        let all_on_io = steps.map(|step| (step, "io".to_owned()));
        assert_eq!(threads.seen(), all_on_io.into(), "h2: {h2}");
    };
    let _limit = time_limit();
    [false, true].into_iter().for_each(|h2| run(lanes(1), h2))
}

#[test]
fn the_client_s_own_error_arrives_as_it_is_and_a_panic_as_one() {
    let _limit = time_limit();
    let Lanes { cpu, io: _io } = lanes(1);
    let layer = IoLayer::new(cpu.handle());
    let client: HyperClient = Client::builder(TokioExecutor::new()).build_http();
    // Port 1: no server is there.
    let job = cpu.spawn(layer.layer(client).oneshot(ask("http://127.0.0.1:1/")));
    let error = job.wait().unwrap().unwrap_err();
    let own = error.downcast_ref::<legacy::Error>();
    assert!(own.unwrap().is_connect(), "{error:?}");

    let broken = tower::service_fn(|_| async {
        assert_eq!(thread_name(), "io");
        panic!("the client is broken");
        #[allow(unreachable_code, reason = "it says what the panic is instead of")]
        Ok::<Answer, Infallible>(Answer::default())
    });
    let job = cpu.spawn(layer.layer(broken).oneshot(ask("/")));
    let error = job.wait().unwrap().unwrap_err();
    let panic = error.downcast_ref::<JoinError>().unwrap();
    assert!(panic.is_panic());
    assert!(panic.to_string().contains("the client is broken"));
}

/// Ready once the future of `asks` says so, and the instance that was asked alone: a clone has
/// to ask again, as with tower's own limits.
struct Later {
    asks: Arc<dyn Fn() -> BoxFuture<'static, io::Result<()>> + Send + Sync>,
    asked: Option<BoxFuture<'static, io::Result<()>>>,
    ready: bool,
    called: mpsc::Sender<()>,
}

impl Clone for Later {
    fn clone(&self) -> Self {
        Self {
            asks: self.asks.clone(),
            asked: None,
            ready: false,
            called: self.called.clone(),
        }
    }
}

impl Service<Request<()>> for Later {
    type Response = Answer;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<Answer>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let asked = self.asked.get_or_insert_with(|| (self.asks)());
        let ready = std::task::ready!(asked.as_mut().poll(cx));
        self.asked = None;
        self.ready = ready.is_ok();
        Poll::Ready(ready)
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        assert!(self.ready, "called without having been asked");
        self.ready = false;
        self.called.send(()).unwrap();
        std::future::ready(Ok(Response::default()))
    }
}

/// And its calls.
fn later<F>(asks: impl Fn() -> F + Send + Sync + 'static) -> (Later, mpsc::Receiver<()>)
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let (called, calls) = mpsc::channel();
    let service = Later {
        asks: Arc::new(move || Box::pin(asks())),
        asked: None,
        ready: false,
        called,
    };
    (service, calls)
}

/// The service becomes ready, and is called, while the lane's only thread is
/// taken.
#[test]
fn readiness_is_awaited_on_the_io_lane() {
    let _limit = time_limit();
    let Lanes { cpu, io: _io } = lanes(1);
    let threads = Threads::default();
    let (tell, told) = watch::channel(false);
    let (service, calls) = later(move || {
        let mut told = told.clone();
        async move {
            told.wait_for(|told| *told)
                .await
                .map(drop)
                .map_err(io::Error::other)
        }
    });
    let service = Watched::new(service, &threads);
    let mut service = IoLayer::new(cpu.handle()).layer(service);
    let started = cpu.spawn(async move {
        let ready = poll_fn(|cx| Poll::Ready(service.poll_ready(cx))).await;
        assert!(matches!(ready, Poll::Ready(Ok(()))));
        let mut response = service.call(Request::new(()));
        assert!(poll_once(&mut response).await.is_pending());
        [response]
    });
    let [response] = started.wait().unwrap();
    let stuck = Stuck::start(cpu.handle());
    tell.send(true).unwrap();
    calls.recv().unwrap();
    stuck.end();
    cpu.spawn(response).wait().unwrap().unwrap();
    let steps = ["poll_ready", "call", "response"];
    let all_on_io = steps.map(|step| (step, "io".to_owned()));
    assert_eq!(threads.seen(), all_on_io.into());
}

#[test]
fn a_service_that_says_no_is_not_called_and_its_error_arrives() {
    let _limit = time_limit();
    let Lanes { cpu, io: _io } = lanes(1);
    let (service, calls) = later(async || Err(io::Error::other("never again")));
    let service = IoLayer::new(cpu.handle()).layer(service);
    let job = cpu.spawn(service.oneshot(Request::new(())));
    let error = job.wait().unwrap().unwrap_err();
    let own = error.downcast_ref::<io::Error>().unwrap();
    assert_eq!(own.to_string(), "never again");
    assert!(calls.try_recv().is_err());
}

/// A waiter that gives up leaves the queue.
#[test]
fn dropping_the_future_ends_the_wait_for_readiness() {
    let _limit = time_limit();
    let Lanes { cpu, io: _io } = lanes(1);
    let (asked, asks) = mpsc::channel();
    let (dropped, dropped_on) = mpsc::channel();
    let (never, _) = later(move || {
        let guard = Dropped(dropped.clone());
        asked.send(()).unwrap();
        async move {
            let _guard = guard;
            pending().await
        }
    });
    let mut service = IoLayer::new(cpu.handle()).layer(never);
    let response = service.call(Request::new(()));
    asks.recv().unwrap();
    drop(response);
    assert_eq!(dropped_on.recv().unwrap(), "io");
}

/// tonic's channel and tower's buffer have a worker, and say "closed" once that
/// is gone. If the whole lane goes, that is the truth to tell.
#[test]
fn a_service_whose_worker_went_with_the_io_lane_is_not_blamed() {
    let _limit = time_limit();
    let Lanes { cpu, io } = lanes(1);
    let (dropped, worker_gone) = mpsc::channel();
    let (works, polled) = lasts(Dropped(dropped));
    io.spawn(works);
    polled.recv().unwrap();
    let (asked, asks) = mpsc::channel();
    let worker_gone = Mutex::new(worker_gone);
    let (closed, _) = later(move || {
        asked.send(()).unwrap();
        // On the other thread of the lane, which ends the runtime.
        worker_gone.lock().unwrap().recv().unwrap();
        std::future::ready(Err(io::Error::other("closed")))
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

/// Whose answers are given by hand.
fn by_hand() -> (
    BoxCloneService<Request<()>, Answer, oneshot::error::RecvError>,
    mpsc::Receiver<oneshot::Sender<Answer>>,
) {
    let (called, calls) = mpsc::channel();
    let service = tower::service_fn(move |_| {
        let (answer, answered) = oneshot::channel();
        called.send(answer).unwrap();
        answered
    });
    (BoxCloneService::new(service), calls)
}

/// tower's limit panics when it is called without being ready; and all three
/// requests are accepted at once, since they wait on the I/O lane.
#[test]
fn a_limit_inside_shows_in_the_delay_and_not_in_poll_ready() {
    let _limit = time_limit();
    let Lanes { cpu, io: _io } = lanes(1);
    let (service, calls) = by_hand();
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

#[test]
fn a_limit_outside_works_as_ever() {
    let _limit = time_limit();
    let Lanes { cpu, io: _io } = lanes(1);
    let (service, calls) = by_hand();
    let mut service = ServiceBuilder::new()
        .concurrency_limit(1)
        .layer(IoLayer::new(cpu.handle()))
        .service(service);
    let mut other = service.clone();
    let first = wait(service.ready()).unwrap().call(Request::new(()));
    let answer = calls.recv().unwrap();
    assert!(wait(poll_once(&mut other.ready())).is_pending());
    answer.send(Answer::default()).unwrap();
    wait(first).unwrap();
    assert!(wait(poll_once(&mut other.ready())).is_ready());
}
