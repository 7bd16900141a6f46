//! Two Tokio runtimes share one HTTP client. Why do requests of 50 ms take a second?
//!
//! The scenario is *tokio-debug* (CeresDB, 2023), with its log lines. The runtimes `io` and `cpu`
//! have two workers each and send ten requests each, 10 ms apart. The server answers after 50 ms.
//! After its response a task of `cpu` keeps its worker for 200 ms. `io` has only its requests.
//!
//! The client's pool knows nothing of runtimes. It gives a request of `io` a connection that a task
//! of `cpu` opened: workers of `cpu`, which are busy, have to write and read it. On twolane a task
//! of the CPU side sends its request by `send_io()`: all connections belong to `io`.
//!
//! This is no benchmark: `cargo bench --bench pool_stall` says how often a request stalls, where it
//! waits and what else cures it. `docs/stall.md` explains it step by step.
//!
//! ```text
//! cargo run --release -p demos --example tokio_debug              # some seconds
//! cargo run --release -p demos --example tokio_debug -- --sleep   # a task sleeps, as published
//! ```

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use axum::{Router, routing::get};
use reqwest::{Client, RequestBuilder};
use tokio::runtime::{Builder, Runtime};
use twolane::{CpuRuntime, RequestBuilderExt};

type Error = Box<dyn std::error::Error>;
type Log = Sender<(Instant, String)>;

const PUBLISHED: &str = "as published";
const PACE: Duration = Duration::from_millis(10);
const BUSY: Duration = Duration::from_millis(200);
const LATE_MS: u64 = 100;

/// By how many ms a timer of `io` or of the server was late, at most: how busy the machine is.
static TIMER_LATE_MS: AtomicU64 = AtomicU64::new(0);

fn main() -> Result<(), Error> {
    let server = runtime("server")?;
    let listener = server.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    let url = format!("http://{}/", listener.local_addr()?);
    let app = Router::new().route("/", get(async || timer(Duration::from_millis(50)).await));
    server.spawn(async { axum::serve(listener, app).await });

    let mut table = String::new();
    let mut run_up_to = |times: u32, name: &str, is_awaited: bool| {
        for _ in 0..times {
            let (row, stalls) = run(name, &url)?;
            table += &row;
            if stalls == is_awaited {
                return Ok(stalls);
            }
        }
        Ok::<bool, Error>(!is_awaited)
    };
    // Some runs as published have no stall. On twolane, chance may delay a request.
    let published_stalls = run_up_to(5, PUBLISHED, true)?;
    let ours_stalls = run_up_to(2, "on twolane", false)?;
    println!("\nThe ten requests of io, in ms:\n{table}");
    match (published_stalls, ours_stalls) {
        (_, true) => return Err("requests of io were late in two runs on twolane".into()),
        (false, _) => println!("By chance no run as published has stalled. Try again."),
        _ => println!("Requests of io waited for workers of cpu. On twolane they do not."),
    }
    Ok(())
}

/// Returns a row of the table, and whether a request was later than the machine explains.
fn run(name: &str, url: &str) -> Result<(String, bool), Error> {
    println!("\n{name}");
    let client = Client::builder().no_proxy().pool_max_idle_per_host(4);
    let client = client.build()?;
    let (io, cpu) = (runtime("io")?, runtime("cpu")?);
    let lane = CpuRuntime::builder().io_handle(io.handle().clone());
    let lane = lane.worker_threads(2).build()?;
    TIMER_LATE_MS.store(0, Relaxed);
    io.spawn(async {
        loop {
            timer(Duration::from_millis(1)).await;
        }
    });

    let (log, lines) = mpsc::channel();
    let (start, mut requests) = (Instant::now(), Vec::new());
    for n in 0..10 {
        thread::sleep(PACE);
        let (label, to_log, request) = (format!("io-{n}"), log.clone(), client.get(url));
        requests.push(io.spawn(task(label, to_log, send(request), || ())));
        let (label, to_log, request) = (format!("cpu-{n}"), log.clone(), client.get(url));
        if name == PUBLISHED {
            cpu.spawn(task(label, to_log, send(request), keep_busy));
        } else {
            let job = task(label, to_log, send_io(request), keep_busy);
            lane.spawn(job).detach();
        }
    }
    drop(log);
    // Until all tasks have ended.
    for (at, line) in lines {
        println!("[{:>4} ms] {line}", (at - start).as_millis());
    }
    let (mut row, mut late, mut slowest) = (format!("{name:13}"), 0, 0);
    for request in requests {
        let ms = io.block_on(request)?.as_millis() as u64;
        row += &format!("{ms:>5}");
        late += u32::from(ms > LATE_MS);
        slowest = slowest.max(ms);
    }
    lane.shutdown().wait();
    let timer_ms = TIMER_LATE_MS.load(Relaxed);
    row += &format!(" | {late} over {LATE_MS} | a timer was late by {timer_ms}\n");
    // A request changes threads several times, and a full machine may be late with each.
    Ok((row, slowest > LATE_MS + 4 * timer_ms))
}

/// With the log lines of the article.
async fn task<F: Future>(label: String, log: Log, text: F, then: fn()) -> Duration {
    let begin = Instant::now();
    log.send((begin, format!("{label} begin"))).unwrap();
    text.await;
    let cost = begin.elapsed();
    let line = format!("{label} cost: {cost:.2?}");
    log.send((begin + cost, line)).unwrap();
    then();
    cost
}

async fn send(request: RequestBuilder) -> String {
    request.send().await.unwrap().text().await.unwrap()
}

/// From a CPU lane: the request is a task of `io`.
async fn send_io(request: RequestBuilder) -> String {
    request.send_io().await.unwrap().text().await.unwrap()
}

fn keep_busy() {
    if std::env::args().any(|arg| arg == "--sleep") {
        return thread::sleep(BUSY);
    }
    let start = Instant::now();
    while start.elapsed() < BUSY {
        std::hint::spin_loop();
    }
}

async fn timer(time: Duration) {
    let due = Instant::now() + time;
    tokio::time::sleep(time).await;
    TIMER_LATE_MS.fetch_max(due.elapsed().as_millis() as u64, Relaxed);
}

fn runtime(name: &str) -> std::io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).thread_name(name);
    builder.enable_all().build()
}
