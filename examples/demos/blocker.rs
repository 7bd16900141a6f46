//! A service is slow now and then. Which handler blocks it?
//!
//! An axum service has two workers and three routes. `/quick` answers in a millisecond, but it has
//! to wait for a worker, and two handlers keep theirs: `/report` computes for 100 ms, and `/lookup`
//! calls something that blocks its thread as long. Measured by route, all three are slow at times.
//!
//! The watch looks at the workers while they run, and says which handler blocks and what to do
//! about it. A service usually has a `tracing` subscriber, which gets these lines; here a hook prints
//! them. Then both handlers do as the lines say: one computes on the CPU lane, the other blocks in
//! `spawn_blocking`. The watch sees no more, and `/quick` is quick.
//!
//! It fails if the watch does not name these two routes, or names them still when they are cured.
//! How late `/quick` was is no criterion: a busy machine makes it late, too.
//!
//! It is no test of the watch: `cargo bench --bench find_the_blocker` has ten routes, a full machine
//! and a throttled container. `docs/p99.md` says what the watch does not see.
//!
//! ```text
//! cargo run --release -p demos --example blocker   # 5 seconds
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::{Router, routing::get};
use tokio::runtime::Builder;
use twolane::watch::{Watch, WatchLayer};
use twolane::{CpuRuntime, Handle};

type Error = Box<dyn std::error::Error>;

const TAKES: Duration = Duration::from_millis(100);
const LASTS: Duration = Duration::from_secs(2);
/// For a machine that gives this process few cores.
const LASTS_AT_MOST: Duration = Duration::from_secs(8);

/// Stands for work on the CPU.
fn compute() {
    let start = Instant::now();
    while start.elapsed() < TAKES {
        std::hint::spin_loop();
    }
}

/// Stands for a synchronous driver.
fn look_up() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(TAKES)).unwrap();
    let _ = socket.recv(&mut [0]);
}

async fn quick() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// As people do it.
fn routes() -> Router<Handle> {
    Router::new()
        .route("/quick", get(quick))
        .route("/report", get(async || compute()))
        .route("/lookup", get(async || look_up()))
}

/// As the watch says.
fn cured() -> Router<Handle> {
    let report = async |State(cpu): State<Handle>| cpu.spawn_cpu(compute).await.unwrap();
    let lookup = async || tokio::task::spawn_blocking(look_up).await.unwrap();
    Router::new()
        .route("/quick", get(quick))
        .route("/report", get(report))
        .route("/lookup", get(lookup))
}

fn main() -> Result<(), Error> {
    let before = run("As people do it", routes(), 2)?;
    let after = run("As the watch says", cured(), 0)?;
    println!("\nStalls: {before:?}, and then {after:?}");
    for route in ["GET /report", "GET /lookup"] {
        let [before, after] = [&before, &after].map(|stalls| stalls.get(route).unwrap_or(&0));
        // One may be by chance, on a full machine.
        if *before == 0 || after * 5 > *before {
            return Err(format!("{route}: {before} stalls, and {after} when it is cured").into());
        }
    }
    println!("The watch named the two handlers that block, and said what to do.");
    Ok(())
}

/// Sends requests until the watch has named as many routes. Returns how many stalls each has.
fn run(
    title: &str,
    routes: Router<Handle>,
    names: usize,
) -> Result<BTreeMap<String, usize>, Error> {
    println!("\n{title}:");
    let io = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let named: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let by_hook = named.clone();
    let watch = Watch::new().on_stall(move |stall| {
        let culprit = stall.culprit().unwrap_or("code without a name").to_owned();
        let mut stalls = by_hook.lock().unwrap();
        if !stalls.contains_key(&culprit) {
            println!("  {stall}");
        }
        *stalls.entry(culprit).or_default() += 1;
    });
    let cpu = CpuRuntime::builder()
        .io_handle(io.handle().clone())
        .watch_io(watch)
        .build()?;

    let by_route = WatchLayer::new(|request: &Request| {
        let route = request.extensions().get::<MatchedPath>();
        let route = route.map_or("no route", |route| route.as_str());
        format!("{} {route}", request.method()).into()
    });
    let service = routes
        .route_layer(by_route)
        .with_state(cpu.handle().clone());
    let listener = io.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    io.spawn(async { axum::serve(listener, service).await });

    // Each client asks for one route, again and again, on threads of its own.
    let start = Instant::now();
    let is_over = || {
        let has_named = named.lock().unwrap().len() >= names;
        start.elapsed() > if has_named { LASTS } else { LASTS_AT_MOST }
    };
    let ask = |route: &str| {
        let client = Builder::new_current_thread().enable_all().build().unwrap();
        let requests = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = format!("http://{address}{route}");
        let mut took = Vec::new();
        while !is_over() {
            let sent = Instant::now();
            client.block_on(requests.get(&url).send()).unwrap();
            took.push(sent.elapsed());
            thread::sleep(Duration::from_millis(5));
        }
        took.sort();
        took
    };
    let quick = thread::scope(|scope| {
        scope.spawn(|| ask("/report"));
        scope.spawn(|| ask("/lookup"));
        ask("/quick")
    });
    let (median, most) = (quick[quick.len() / 2], quick[quick.len() - 1]);
    println!(
        "  /quick: {median:.1?} in the middle, {most:.0?} at most, of {} requests",
        quick.len()
    );
    cpu.shutdown().wait();
    Ok(std::mem::take(&mut *named.lock().unwrap()))
}
