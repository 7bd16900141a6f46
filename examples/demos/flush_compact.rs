//! A storage engine flushes and compacts. Why are the flushes late, in two thread pools?
//!
//! The scenario is from the authors of CeresDB (2023). A *flush* is what a client waits for: some
//! CPU, then a put of 256 KiB to an object store. A *compaction* is bulk work: it gets eight parts of
//! 512 KiB, computes for 200 ms and puts 4 MiB. Four flushes begin every 100 ms, beside four
//! compactions that never pause.
//!
//! As people do it, flushes and compactions have a runtime each, and share the store's HTTP client.
//! Connections that compactions opened serve flushes, too, while the threads of these connections
//! compute. On twolane all I/O stays on one runtime; the CPU parts go to a CPU lane by `spawn_cpu`,
//! those of flushes at `Priority::High`, those of compactions at `Low`.
//!
//! The store is an HTTP server in this process, on loopback and on the same cores, which waits 20 ms
//! before it answers. `cargo bench --bench flush_compact` has a real S3 server and `object_store`,
//! more contenders, and compares what was written. This fails if flushes are no faster on twolane.
//!
//! ```text
//! cargo run --release -p demos --example flush_compact   # 10 seconds
//! ```

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use axum::extract::{DefaultBodyLimit, Path};
use axum::{Router, body::Bytes, routing::get};
use reqwest::Client;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};
use twolane::{CpuRuntime, Handle, Priority};

type Error = Box<dyn std::error::Error>;

const KIB: usize = 1024;
const LASTS: Duration = Duration::from_secs(3);

/// Where an operation runs, and the lane of its CPU part. None: that runs there, too.
type Place<'a> = (&'a Runtime, Option<Handle>);

async fn compute(lane: Option<Handle>, ms: u32) {
    match lane {
        None => work(ms),
        Some(lane) => lane.spawn_cpu(move || work(ms)).await.unwrap(),
    }
}

async fn flush(store: Client, url: String, lane: Option<Handle>) -> Duration {
    let start = Instant::now();
    compute(lane, 5).await;
    put(&store, &url, 256 * KIB).await;
    start.elapsed()
}

async fn compact(store: Client, url: String, lane: Option<Handle>) {
    let mut parts = JoinSet::new();
    for _ in 0..8 {
        let part = store.get(format!("{url}{}", 512 * KIB)).send();
        parts.spawn(async { part.await.unwrap().bytes().await.unwrap() });
    }
    parts.join_all().await;
    compute(lane, 200).await;
    put(&store, &url, 4096 * KIB).await;
}

async fn put(store: &Client, url: &str, bytes: usize) {
    let put = store.put(format!("{url}0")).body(vec![0; bytes]).send();
    put.await.unwrap().error_for_status().unwrap();
}

fn main() -> Result<(), Error> {
    let server = runtime()?;
    let listener = server.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    let url = format!("http://{}/", listener.local_addr()?);
    let get_part = async |Path(bytes): Path<usize>| {
        sleep(Duration::from_millis(20)).await;
        vec![0; bytes]
    };
    let put_part = async |_: Bytes| sleep(Duration::from_millis(20)).await;
    let app = Router::new().route("/{bytes}", get(get_part).put(put_part));
    let app = app.layer(DefaultBodyLimit::disable());
    server.spawn(async { axum::serve(listener, app).await });

    println!("The flush in the middle of all, the one at p95, the slowest:");
    let (one, other) = (runtime()?, runtime()?);
    let (flushes, compactions) = ((&one, None), (&other, None));
    run("alone", &url, &flushes, None)?;
    let published = run("two runtimes", &url, &flushes, Some(&compactions))?;

    let cpu = CpuRuntime::builder().io_handle(one.handle().clone());
    let cpu = cpu.worker_threads(2).build()?;
    let lane = cpu.handle().clone();
    let flushes = (&one, Some(lane.with_priority(Priority::High)));
    let compactions = (&one, Some(lane.with_priority(Priority::Low)));
    let ours = run("twolane", &url, &flushes, Some(&compactions))?;
    if ours >= published {
        return Err("on twolane flushes are no faster".into());
    }
    println!("Beside compactions the p95 is {published:.0?} on two runtimes, {ours:.0?} here.");
    Ok(())
}

/// Returns the p95 of the flushes: that of two runtimes is far above the noise of a full machine.
fn run(name: &str, url: &str, flushes: &Place, beside: Option<&Place>) -> Result<Duration, Error> {
    let (store, start) = (Client::builder().no_proxy().build()?, Instant::now());
    let mut busy = Vec::new();
    for (runtime, lane) in [beside; 4].into_iter().flatten() {
        let (store, url, lane) = (store.clone(), url.to_owned(), lane.clone());
        busy.push(runtime.spawn(async move {
            let mut done = 0;
            while start.elapsed() < LASTS {
                compact(store.clone(), url.clone(), lane.clone()).await;
                done += 1;
            }
            done
        }));
    }
    let (runtime, lane) = flushes;
    let mut took = runtime.block_on(async {
        let (mut all, mut next) = (JoinSet::new(), interval(Duration::from_millis(100)));
        while start.elapsed() < LASTS {
            next.tick().await;
            for _ in 0..4 {
                all.spawn(flush(store.clone(), url.to_owned(), lane.clone()));
            }
        }
        all.join_all().await
    });
    let mut done = 0;
    for compactions in busy {
        done += runtime.block_on(compactions)?;
    }
    let per_s = f64::from(done) / start.elapsed().as_secs_f64();
    took.sort();
    let [middle, p95, most] = [50, 95, 100].map(|part| took[part * (took.len() - 1) / 100]);
    println!("{name:14}{middle:>8.0?}{p95:>8.0?}{most:>8.0?}, {per_s:.1} compactions/s");
    Ok(p95)
}

/// So many ms of work, if the thread has a core for itself.
fn work(ms: u32) {
    static CHUNK_TAKES: LazyLock<Duration> =
        LazyLock::new(|| (0..50).map(|_| chunk()).min().unwrap());
    let chunks = Duration::from_millis(ms.into()).div_duration_f64(*CHUNK_TAKES) as u32;
    for _ in 0..chunks {
        chunk();
    }
}

/// Some work. Returns how long it took.
fn chunk() -> Duration {
    let start = Instant::now();
    (0..20_000_u64).fold(1, |sum, n| black_box(sum ^ n));
    start.elapsed()
}

fn runtime() -> std::io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build()
}
