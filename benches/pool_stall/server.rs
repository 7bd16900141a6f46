//! The server: HTTP/1.1 and h2c on loopback, on a runtime and threads of its own.
//!
//! `GET /ID/0` is answered after 50 ms, `GET /ID/LEN` at once with `LEN` bytes. It notes when a
//! request was seen and when it was answered: the server lives in the same process as its clients,
//! so their clocks are one.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use twolane_benches::io_runtime;

use crate::world::THREADS;

/// How long the server thinks before it answers `GET /ID/0`.
pub const THINKS: Duration = Duration::from_millis(50);

/// When the server had a request in hand, and when it gave the answer away.
pub struct Served {
    pub seen: Instant,
    pub answered: Instant,
}

type Log = Arc<Mutex<HashMap<u64, Served>>>;

pub struct Server {
    addr: SocketAddr,
    log: Log,
    next_id: AtomicU64,
    _runtime: Runtime,
}

impl Server {
    pub fn start() -> io::Result<Self> {
        let runtime = io_runtime(THREADS);
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let addr = listener.local_addr()?;
        let log = Log::default();
        let app = Router::new()
            .route("/{id}/{len}", get(answer))
            .with_state(Arc::clone(&log));
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
            _runtime: runtime,
        })
    }

    /// The id of a new request, and its URL.
    pub fn request(&self) -> (u64, String) {
        self.request_of_bytes(0)
    }

    /// Of one that is answered at once with so many bytes.
    pub fn request_of_bytes(&self, len: usize) -> (u64, String) {
        let id = self.next_id.fetch_add(1, Relaxed);
        (id, format!("http://{}/{id}/{len}", self.addr))
    }

    /// What the server noted about a request, if it has answered it.
    pub fn served(&self, id: u64) -> Option<Served> {
        self.log.lock().unwrap().remove(&id)
    }
}

async fn answer(State(log): State<Log>, Path((id, len)): Path<(u64, usize)>) -> Vec<u8> {
    let seen = Instant::now();
    let body = match len {
        0 => {
            tokio::time::sleep(THINKS).await;
            b"hello".to_vec()
        }
        len => vec![b'x'; len],
    };
    let answered = Instant::now();
    log.lock().unwrap().insert(id, Served { seen, answered });
    body
}
