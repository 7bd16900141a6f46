//! Loops on a runtime of the current thread, which is the I/O lane: of what costs nanoseconds.

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::{Future, Ready, poll_fn, ready};
use std::hint::black_box;
use std::pin::pin;
use std::task::Poll;
use std::time::Instant;

use tokio::runtime;
use tower::{Layer, Service, service_fn};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::{Identity, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use twolane::watch::{SpanWatch, WatchLayer, watch};
use twolane_benches::Sample;

use crate::lanes::Watched;

const POLLS: u64 = 1_000_000;
const REQUESTS: u64 = 300_000;
const SPANS: u64 = 200_000;

type Loop = fn(less: u64) -> Sample;

const NO: Watched = Watched::No;
const YES: Watched = Watched::Yes;

pub const ALL: [(&str, Loop); 9] = [
    ("poll/without", |less| polls(NO, ready_always(), less)),
    ("poll/off", |less| polls(NO, watch(ready_always()), less)),
    ("poll/on", |less| polls(YES, watch(ready_always()), less)),
    ("request/without", |less| {
        requests(NO, service_fn(serve), less)
    }),
    ("request/off", |less| {
        requests(NO, layer().layer(service_fn(serve)), less)
    }),
    ("request/on", |less| {
        requests(YES, layer().layer(service_fn(serve)), less)
    }),
    ("span/without", |less| spans(NO, without_span_watch(), less)),
    ("span/off", |less| spans(NO, with_span_watch(), less)),
    ("span/on", |less| spans(YES, with_span_watch(), less)),
];

/// Where `measure` runs: inside a runtime, with a lane.
fn in_lane<T>(watched: Watched, measure: impl Future<Output = T>) -> T {
    let io = runtime::Builder::new_current_thread().build().unwrap();
    let _lane = watched.lane(io.handle());
    io.block_on(measure)
}

fn sample(metric: &'static str, since: Instant, each: u64) -> Sample {
    Sample::of(
        metric,
        "ns",
        since.elapsed().as_nanos() as f64 / each as f64,
    )
}

/// Ready at each poll, so one future takes as many polls as are measured.
fn ready_always() -> impl Future<Output = u64> {
    poll_fn(|_| Poll::Ready(black_box(1)))
}

fn polls(watched: Watched, future: impl Future<Output = u64>, less: u64) -> Sample {
    in_lane(watched, async {
        let mut future = pin!(future);
        let polls = POLLS / less;
        let start = Instant::now();
        poll_fn(|cx| {
            for _ in 0..polls {
                assert!(black_box(future.as_mut().poll(cx)).is_ready());
            }
            Poll::Ready(())
        })
        .await;
        sample("poll", start, polls)
    })
}

fn serve(request: u64) -> Ready<Result<u64, Infallible>> {
    ready(Ok(black_box(request)))
}

/// With a name that is made beforehand: to make one is the user's cost.
fn layer() -> WatchLayer<impl Fn(&u64) -> Cow<'static, str> + Clone> {
    WatchLayer::new(|_: &u64| "GET /answer".into())
}

fn requests(
    watched: Watched,
    mut service: impl Service<u64, Response = u64, Error = Infallible>,
    less: u64,
) -> Sample {
    in_lane(watched, async {
        let requests = REQUESTS / less;
        let start = Instant::now();
        for request in 0..requests {
            assert_eq!(service.call(request).await, Ok(request));
        }
        sample("request", start, requests)
    })
}

/// A registry alone, without any layer, keeps the spans that are closed.
fn without_span_watch() -> DefaultGuard {
    let registry = tracing_subscriber::registry();
    registry.with(Identity::new()).set_default()
}

fn with_span_watch() -> DefaultGuard {
    let registry = tracing_subscriber::registry();
    registry.with(SpanWatch::new()).set_default()
}

fn spans(watched: Watched, _subscriber: DefaultGuard, less: u64) -> Sample {
    in_lane(watched, async {
        let spans = SPANS / less;
        let span = tracing::info_span!("again");
        let start = Instant::now();
        for _ in 0..spans {
            black_box(&span).in_scope(|| black_box(()));
        }
        sample("span", start, spans)
    })
}
