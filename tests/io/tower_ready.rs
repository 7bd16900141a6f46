//! `IoLayer` and readiness: whatever is inside of it is waited for on the I/O
//! lane, whatever is outside sees a service that is always ready.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll};

use crate::server::poll_once;
use crate::stepped::wait;
use crate::support::{self, Dropped, Lanes, Stuck, lanes, on_both};
use crate::watched::{Threads, Watched};
use http::{Request, Response};
use http_body_util::Empty;
use tokio::sync::{oneshot, watch};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use twolane::Backend;
use twolane::io::IoLayer;

type Answer = Response<Empty<bytes::Bytes>>;

/// Ready once it is told so, and the instance that was asked alone: a clone has
/// to ask again, as with tower's own limits.
struct Later {
    told: watch::Receiver<Option<bool>>,
    asks: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send>>>,
    ready: bool,
    called: mpsc::Sender<()>,
}

impl Clone for Later {
    fn clone(&self) -> Self {
        Self {
            told: self.told.clone(),
            asks: None,
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
        let mut told = self.told.clone();
        let asks = self.asks.get_or_insert_with(|| {
            Box::pin(async move {
                match told.wait_for(Option::is_some).await.as_deref() {
                    Ok(Some(true)) => Ok(()),
                    _ => Err(io::Error::other("never again")),
                }
            })
        });
        let ready = std::task::ready!(asks.as_mut().poll(cx));
        self.asks = None;
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

fn later() -> (Later, watch::Sender<Option<bool>>, mpsc::Receiver<()>) {
    let (tell, told) = watch::channel(None);
    let (called, calls) = mpsc::channel();
    let service = Later {
        told,
        asks: None,
        ready: false,
        called,
    };
    (service, tell, calls)
}

/// The service becomes ready, and is called, while the lane's only thread is
/// taken.
#[test]
fn readiness_is_awaited_on_the_io_lane() {
    on_both(1, |Lanes { cpu, io: _io }| {
        let threads = Threads::default();
        let (service, tell, calls) = later();
        let service = Watched::new(service, &threads);
        let mut service = IoLayer::new(&cpu.handle()).layer(service);
        let started = cpu.spawn(async move {
            let ready = poll_fn(|cx| Poll::Ready(service.poll_ready(cx))).await;
            assert!(matches!(ready, Poll::Ready(Ok(()))));
            let mut response = service.call(Request::new(()));
            assert!(poll_once(&mut response).await.is_pending());
            [response]
        });
        let [response] = started.wait().unwrap();
        let (stuck, let_go) = Stuck::start(&cpu.handle()).split();
        tell.send(Some(true)).unwrap();
        calls.recv().unwrap();
        let_go.send(()).unwrap();
        stuck.wait().unwrap();
        cpu.spawn(response).wait().unwrap().unwrap();
        let steps = ["poll_ready", "call", "response"];
        let all_on_io = steps.map(|step| (step, "io".to_owned()));
        assert_eq!(threads.seen(), all_on_io.into());
    });
}

#[test]
fn a_service_that_says_no_is_not_called_and_its_error_arrives() {
    on_both(1, |Lanes { cpu, io: _io }| {
        let (service, tell, calls) = later();
        tell.send(Some(false)).unwrap();
        let service = IoLayer::new(&cpu.handle()).layer(service);
        let job = cpu.spawn(service.oneshot(Request::new(())));
        let error = job.wait().unwrap().unwrap_err();
        let own = error.downcast_ref::<io::Error>().unwrap();
        assert_eq!(own.to_string(), "never again");
        assert!(calls.try_recv().is_err());
    });
}

/// A waiter that gives up leaves the queue.
#[test]
fn dropping_the_future_ends_the_wait_for_readiness() {
    struct Never {
        asked: mpsc::Sender<()>,
        dropped: mpsc::Sender<String>,
        guard: Option<Dropped>,
    }
    impl Clone for Never {
        fn clone(&self) -> Self {
            Self {
                asked: self.asked.clone(),
                dropped: self.dropped.clone(),
                guard: Some(Dropped(self.dropped.clone())),
            }
        }
    }
    impl Service<Request<()>> for Never {
        type Response = Answer;
        type Error = io::Error;
        type Future = std::future::Pending<io::Result<Answer>>;
        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            assert!(self.guard.is_some(), "a clone of its own");
            self.asked.send(()).unwrap();
            Poll::Pending
        }
        fn call(&mut self, _: Request<()>) -> Self::Future {
            unreachable!()
        }
    }
    on_both(1, |Lanes { cpu, io: _io }| {
        let (asked, asks) = mpsc::channel();
        let (dropped, dropped_on) = mpsc::channel();
        let guard = None;
        let never = Never {
            asked,
            dropped,
            guard,
        };
        let mut service = IoLayer::new(&cpu.handle()).layer(never);
        let response = service.call(Request::new(()));
        asks.recv().unwrap();
        drop(response);
        assert_eq!(dropped_on.recv().unwrap(), "io");
    });
}

/// tonic's channel and tower's buffer have a worker, and say "closed" once that
/// is gone. If the whole lane goes, that is the truth to tell.
#[test]
fn a_service_whose_worker_went_with_the_io_lane_is_not_blamed() {
    #[derive(Clone)]
    struct Closed(Arc<Mutex<mpsc::Receiver<String>>>, mpsc::Sender<()>);
    impl Service<Request<()>> for Closed {
        type Response = Answer;
        type Error = io::Error;
        type Future = std::future::Pending<io::Result<Answer>>;
        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.1.send(()).unwrap();
            // On the other thread of the lane, which ends the runtime.
            self.0.lock().unwrap().recv().unwrap();
            Poll::Ready(Err(io::Error::other("closed")))
        }
        fn call(&mut self, _: Request<()>) -> Self::Future {
            unreachable!()
        }
    }
    on_both(1, |Lanes { cpu, io }| {
        let (dropped, worker_gone) = mpsc::channel();
        let guard = Dropped(dropped);
        let (works, working) = mpsc::channel();
        io.spawn(async move {
            let _guard = guard;
            works.send(()).unwrap();
            std::future::pending::<()>().await
        });
        working.recv().unwrap();
        let (asked, asks) = mpsc::channel();
        let closed = Closed(Arc::new(Mutex::new(worker_gone)), asked);
        let response = IoLayer::new(&cpu.handle())
            .layer(closed)
            .call(Request::new(()));
        asks.recv().unwrap();
        io.shutdown_background();
        let error = wait(response).unwrap_err();
        let lost = error.downcast_ref::<twolane::JoinError>();
        let lost = lost.unwrap_or_else(|| panic!("{error:?}"));
        assert!(lost.is_io_runtime_gone());
    });
}

/// Whose answers are given by hand.
fn by_hand() -> (
    impl Service<Request<()>, Response = Answer, Error = oneshot::error::RecvError, Future: Send>
    + Clone
    + Send
    + 'static,
    mpsc::Receiver<oneshot::Sender<Answer>>,
) {
    let (called, calls) = mpsc::channel();
    let service = tower::service_fn(move |_| {
        let (answer, answered) = oneshot::channel();
        called.send(answer).unwrap();
        answered
    });
    (service, calls)
}

/// tower's limit panics when it is called without being ready; and all three
/// requests are accepted at once, since they wait on the I/O lane.
#[test]
fn a_limit_inside_shows_in_the_delay_and_not_in_poll_ready() {
    on_both(1, |Lanes { cpu, io: _io }| {
        let (service, calls) = by_hand();
        let mut service = ServiceBuilder::new()
            .layer(IoLayer::new(&cpu.handle()))
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
    });
}

#[test]
fn a_limit_outside_works_as_ever() {
    let _limit = support::time_limit();
    let Lanes { cpu, io: _io } = lanes(Backend::Rayon, 1);
    let (service, calls) = by_hand();
    let mut service = ServiceBuilder::new()
        .concurrency_limit(1)
        .layer(IoLayer::new(&cpu.handle()))
        .service(service);
    let mut other = service.clone();
    let first = wait(service.ready()).unwrap().call(Request::new(()));
    let answer = calls.recv().unwrap();
    assert!(wait(poll_once(&mut other.ready())).is_pending());
    answer.send(Answer::default()).unwrap();
    wait(first).unwrap();
    assert!(wait(poll_once(&mut other.ready())).is_ready());
}
