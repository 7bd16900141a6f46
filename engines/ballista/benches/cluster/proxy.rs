//! A reverse proxy before the scheduler: it notes when the executors ask for something.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use ballista_core::serde::protobuf::{
    HeartBeatParams, PollWorkParams, PollWorkResult, UpdateTaskStatusParams,
};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::{Deserialize, Serialize};

/// By the executors' ids.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Seen {
    /// The nanoseconds between heartbeats, or polls.
    pub gaps: BTreeMap<String, Vec<u64>>,
    /// The nanoseconds since the last one: an executor that fell silent has no gap for that yet.
    pub silent: BTreeMap<String, u64>,
    /// Those with tasks: an answer to a poll had some, or they reported on some.
    pub busy: BTreeSet<String>,
}

#[derive(Clone)]
pub struct Proxy {
    client: Client<HttpConnector, Body>,
    scheduler: SocketAddr,
    seen: Arc<Mutex<(Seen, BTreeMap<String, Instant>)>>,
}

impl Proxy {
    pub fn new(scheduler: SocketAddr) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .http2_only(true)
            .build_http();
        let seen = Arc::default();
        Self {
            client,
            scheduler,
            seen,
        }
    }

    /// On a thread and a runtime of its own: the scheduler's planning does not delay it.
    pub fn serve(&self, listener: TcpListener) {
        let router = axum::Router::new().fallback(forward);
        let router = router.with_state(self.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            let served = runtime.block_on(async {
                listener.set_nonblocking(true)?;
                axum::serve(tokio::net::TcpListener::from_std(listener)?, router).await
            });
            served.expect("the proxy serves");
        });
    }

    pub fn seen(&self) -> Seen {
        let (seen, last) = &*self.seen.lock().expect("no panic");
        let silent = |last: &Instant| last.elapsed().as_nanos() as u64;
        let silent = last.iter().map(|(id, last)| (id.clone(), silent(last)));
        Seen {
            silent: silent.collect(),
            ..seen.clone()
        }
    }

    /// All but when the last request of each was.
    pub fn forget(&self) {
        let mut seen = self.seen.lock().expect("no panic");
        seen.0.gaps.values_mut().for_each(Vec::clear);
        seen.0.busy.clear();
    }

    fn note_arrival(&self, executor: &str, arrival: Instant) {
        let (seen, last) = &mut *self.seen.lock().expect("no panic");
        let gaps = seen.gaps.entry(executor.to_owned()).or_default();
        if let Some(last) = last.insert(executor.to_owned(), arrival) {
            gaps.push(arrival.duration_since(last).as_nanos() as u64);
        }
    }

    fn note_busy(&self, executor: String) {
        self.seen.lock().expect("no panic").0.busy.insert(executor);
    }
}

const SERVICE: &str = "/ballista.protobuf.SchedulerGrpc/";

async fn forward(State(proxy): State<Proxy>, request: Request) -> Result<Response, Failure> {
    let arrival = Instant::now();
    let (mut parts, mut body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    parts.uri = format!("http://{}{path}", proxy.scheduler).parse()?;
    let mut polls = None;
    match path.strip_prefix(SERVICE) {
        Some("PollWork") => {
            let bytes = body.collect().await?.to_bytes();
            let metadata = message::<PollWorkParams>(&bytes)?.metadata;
            let executor = metadata.ok_or("a poll without metadata")?.id;
            proxy.note_arrival(&executor, arrival);
            polls = Some(executor);
            body = bytes.into();
        }
        Some("HeartBeatFromExecutor") => {
            let bytes = body.collect().await?.to_bytes();
            let executor = message::<HeartBeatParams>(&bytes)?.executor_id;
            proxy.note_arrival(&executor, arrival);
            body = bytes.into();
        }
        Some("UpdateTaskStatus") => {
            let bytes = body.collect().await?.to_bytes();
            proxy.note_busy(message::<UpdateTaskStatusParams>(&bytes)?.executor_id);
            body = bytes.into();
        }
        _ => {}
    }
    let response = proxy.client.request(Request::from_parts(parts, body));
    let (parts, body) = response.await?.into_parts();
    let Some(executor) = polls else {
        return Ok(Response::from_parts(parts, Body::new(body)));
    };
    let answer = body.collect().await?;
    let trailers = answer.trailers().cloned();
    let bytes = answer.to_bytes();
    // A refusal has no message.
    if !bytes.is_empty() && !message::<PollWorkResult>(&bytes)?.tasks.is_empty() {
        proxy.note_busy(executor);
    }
    let body = Body::from(bytes).with_trailers(async move { trailers.map(Ok) });
    Ok(Response::from_parts(parts, Body::new(body)))
}

/// The message of a unary call. A flag and its length precede it.
fn message<M: prost::Message + Default>(body: &Bytes) -> Result<M, Failure> {
    let message = body.get(5..).ok_or("a body without a message")?;
    Ok(M::decode(message)?)
}

struct Failure(String);

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into().to_string())
    }
}

impl axum::response::IntoResponse for Failure {
    fn into_response(self) -> Response {
        eprintln!("proxy: {}", self.0);
        (StatusCode::BAD_GATEWAY, self.0).into_response()
    }
}
