//! The server: HTTP/1.1 and h2c on loopback, on a runtime and threads of its own.
//!
//! `GET /?id=N` is answered after 50 ms, `GET /?id=N&len=L` at once with `L` bytes. It notes when
//! the request was seen and when it was answered: the server lives in the same process as its
//! clients, so their clocks are one. Each response says which peer port it is sent to.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderName, Response, Uri};
use axum::routing::get;
use axum::serve::ListenerExt;
use tokio::runtime::{Builder, Runtime};

/// How long the server thinks before it answers `GET /?id=N`.
pub const THINKS: Duration = Duration::from_millis(50);

/// The response header that carries the peer port as the server saw it.
pub const PEER_PORT: HeaderName = HeaderName::from_static("x-peer-port");

/// When the server had a request in hand, and when it gave the answer away.
#[derive(Clone, Copy)]
pub struct Served {
    pub seen: Instant,
    pub answered: Option<Instant>,
}

type Log = Arc<Mutex<HashMap<u64, Served>>>;

pub struct Server {
    addr: SocketAddr,
    log: Log,
    next_id: AtomicU64,
    runtime: Option<Runtime>,
}

impl Server {
    pub fn start() -> io::Result<Self> {
        let threads = AtomicUsize::new(0);
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name_fn(move || format!("server-{}", threads.fetch_add(1, Ordering::Relaxed)))
            .enable_all()
            .build()?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let addr = listener.local_addr()?;
        let log = Log::default();
        let app = Router::new()
            .route("/", get(answer))
            .with_state(Arc::clone(&log))
            .into_make_service_with_connect_info::<SocketAddr>();
        runtime.spawn(async move {
            // Without TCP_NODELAY the delayed acknowledgement of the peer would be measured too. A
            // socket that is gone already has no use for the option.
            let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
            axum::serve(listener, app).await
        });
        Ok(Self {
            addr,
            log,
            next_id: AtomicU64::new(1),
            runtime: Some(runtime),
        })
    }

    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub fn url(&self, id: u64) -> String {
        format!("http://{}/?id={id}", self.addr)
    }

    /// Of a new request that is answered at once with so many bytes.
    pub fn url_of_bytes(&self, len: usize) -> String {
        format!("{}&len={len}", self.url(self.next_id()))
    }

    /// What the server noted about request `id`; asked once, after the request has ended.
    pub fn served(&self, id: u64) -> Option<Served> {
        self.log.lock().unwrap().remove(&id)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn answer(State(log): State<Log>, peer: ConnectInfo<SocketAddr>, uri: Uri) -> Response<Body> {
    let id = number(&uri, "id");
    let seen = note_seen(&log, id);
    let body = match number(&uri, "len") {
        0 => {
            tokio::time::sleep(THINKS).await;
            Body::from("hello")
        }
        len => Body::from(vec![b'x'; len as usize]),
    };
    note_answered(&log, id, seen);
    let mut response = Response::new(body);
    let port = peer.0.port().into();
    response.headers_mut().insert(PEER_PORT, port);
    response
}

fn note_seen(log: &Log, id: u64) -> Instant {
    let seen = Instant::now();
    let served = Served {
        seen,
        answered: None,
    };
    log.lock().unwrap().insert(id, served);
    seen
}

fn note_answered(log: &Log, id: u64, seen: Instant) {
    let served = Served {
        seen,
        answered: Some(Instant::now()),
    };
    log.lock().unwrap().insert(id, served);
}

/// The value of `key` in the query; 0 when it is missing or no number.
fn number(uri: &Uri, key: &str) -> u64 {
    uri.query()
        .unwrap_or_default()
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find_map(|(name, value)| (name == key).then(|| value.parse().ok())?)
        .unwrap_or(0)
}
