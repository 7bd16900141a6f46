//! The service with its watch, under load.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use twolane::watch::{Stall, Watch, WatchLayer};
use twolane_benches::{current_thread_runtime, io_runtime, lane};

use crate::load::{self, Length};
use crate::routes::{Cache, Episodes, Fifo, Site, routes};

pub struct Found {
    pub stalls: Vec<(Instant, Stall)>,
    /// When the wrong routes began for the first time.
    pub episodes: HashMap<&'static str, Instant>,
    pub innocent_requests: u64,
}

fn route(request: &Request) -> std::borrow::Cow<'static, str> {
    let route = request.extensions().get::<MatchedPath>();
    route.map_or("no route".into(), |route| route.as_str().to_owned().into())
}

/// Until `are_all_reported`, at least. `workers`: `None` is a `current_thread` runtime.
pub fn run(
    workers: Option<usize>,
    length: Length,
    are_all_reported: fn(&[(Instant, Stall)]) -> bool,
) -> Found {
    let io = workers.map_or_else(current_thread_runtime, io_runtime);
    let stalls = Arc::new(Mutex::new(Vec::new()));
    let reported = stalls.clone();
    let watch = Watch::new().on_stall(move |stall| {
        let mut stalls = reported.lock().expect("no holder panics");
        stalls.push((Instant::now(), stall.clone()));
    });
    let cpu = lane(io.handle(), |lane| lane.watch_io(watch));
    let episodes = Episodes::default();
    let site = Site {
        cpu: cpu.handle().clone(),
        episodes: episodes.clone(),
        cache: Cache::default(),
        fifo: Fifo::new(),
    };
    let app = routes()
        .route_layer(WatchLayer::new(route))
        .with_state(site);
    let reported = stalls.clone();
    let is_over = move || are_all_reported(&reported.lock().expect("no holder panics"));
    let (stop, stopped) = oneshot::channel::<()>();
    let innocent_requests = io.block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("a port");
        let clients = std::thread::spawn(move || {
            let asked = load::ask(address, length, is_over);
            drop(stop);
            asked
        });
        let server = axum::serve(listener, app);
        let server = server.with_graceful_shutdown(async { drop(stopped.await) });
        server.await.expect("it serves");
        clients.join().expect("the clients end")
    });
    drop(cpu);
    drop(io);
    let stalls = std::mem::take(&mut *stalls.lock().expect("no holder panics"));
    Found {
        stalls,
        episodes: episodes.all(),
        innocent_requests,
    }
}
