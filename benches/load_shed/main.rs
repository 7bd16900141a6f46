//! Load shedding: an HTTP service whose requests compute, at twice the load that it can serve.
//!
//! A service has one expensive step in a request (`/work`, 10 ms of computing) and
//! a cheap one that must not suffer from it (`/health`). More requests come than
//! its cores can serve. Which of them are answered, when, and what does the load
//! balancer that asks `/health` see? The same axum service, each a process of its own:
//!
//! - `twolane`: the work on the CPU lane, with a limited queue
//!   ([`Builder::queue_limit`](twolane::Builder::queue_limit)). A full queue is
//!   answered 503 at once, in one line (`service.rs`). A
//!   client that has gone takes its work with it. `twolane, idle`: without load.
//! - `inline`: the work in the handler.
//! - `spawn_blocking`: the work in `tokio::task::spawn_blocking`.
//! - `spawn_blocking_limited`: that behind tower's `concurrency_limit` and `load_shed`; once with
//!   as many permits as twolane's queue, once with one per thread.
//!
//! Requests are sent when they are due, whatever has been answered by then, and
//! latency counts from there. A client gives up after a second; `/health` is asked every 5 ms.
//!
//! Look at `/health`: a load balancer takes a service that is late there for dead. And at the
//! 200s: of what comes twice as fast as it can be served, one half can be answered in time, if the
//! rest is refused at once. A service that refuses none works for clients that have given up.
//!
//! It does not measure a network, and the service alone: the clients are on this machine and take
//! their share of its cores. With `wrk` instead of them: `benches/load_shed/measure`.
//!
//! ```text
//! cargo bench --bench load_shed              # a minute and a half
//! cargo bench --bench load_shed -- --quick   # 20 seconds
//! ```

mod client;
mod load;
mod others;
mod server;
mod service;

use std::cell::LazyCell;
use std::thread;
use std::time::Duration;

use tower::BoxError;
use twolane_benches::{Bench, Column, Contender, Contest, Sample, child};

use crate::client::Running;
use crate::load::Load;
use crate::server::{Server, Side};

/// How much more than it can serve comes to each contender.
const OVERLOAD: f64 = 2.0;

fn main() {
    if let Some(server) = child::role::<Server>() {
        server.run().unwrap();
    }
    let bench = Bench::new("load_shed");
    let threads = twolane::CpuRuntime::default_threads().unwrap();
    let limit = 8 * threads;
    let steps = LazyCell::new(|| Some(server::calibrated().steps));
    let start = |side, limit| {
        let server = Server {
            side,
            steps: *steps,
            limit,
        };
        Running::start(&server)
    };
    let seconds = |forms| Duration::from_secs_f64(bench.pick(forms));
    let load = LazyCell::new(|| {
        let twolane = start(Side::Twolane, limit).unwrap();
        let asked = seconds([0.3, 1.0, 4.0, 4.0]);
        let capacity = load::capacity(twolane.url("/work"), 2 * threads, asked);
        let capacity = clients().block_on(capacity).unwrap();
        println!("{capacity:.0} requests for /work a second can be served by {threads} threads");
        Load {
            per_second: OVERLOAD * capacity,
            warm_up: seconds([0.2, 0.5, 2.0, 2.0]),
            counted: seconds([0.5, 1.5, 10.0, 10.0]),
        }
    });
    let (start, load) = (&start, &load);
    let idle = move || {
        let running = start(Side::Twolane, limit)?;
        let load = Load {
            counted: load.counted / 3,
            ..**load
        };
        let mut sample = Sample::default();
        sample.put_latencies("health", load.ask_health(&running.url("/health"))?);
        Ok(sample)
    };
    let mut contenders = vec![contender("twolane, idle".to_owned(), idle)];
    for (name, side, limit) in [
        ("inline".to_owned(), Side::Inline, limit),
        ("spawn_blocking".to_owned(), Side::SpawnBlocking, limit),
        (limited(limit), Side::SpawnBlockingLimited, limit),
        (limited(threads), Side::SpawnBlockingLimited, threads),
        (format!("twolane, limit {limit}"), Side::Twolane, limit),
    ] {
        let turn = move || under_load(&start(side, limit)?, **load);
        contenders.push(contender(name, turn));
    }
    let contest = Contest::new(&bench, contenders, [1, 1, 1, 3], Duration::from_secs(60));
    let Some(report) = contest.run() else { return };
    report.table(
        "/work, answers a second and the latency of the 200s, ms; /health, ms",
        "",
        &[
            Column::spread("200", "served"),
            Column::median("503", "shed"),
            Column::median("gave up", "gave_up"),
            Column::median("failed", "failed"),
            Column::pooled("p50", "work", 0.5),
            Column::pooled("p99", "work", 0.99),
            Column::pooled("/health p50", "health", 0.5),
            Column::pooled("p99", "health", 0.99),
            Column::pooled("max", "health", 1.0),
        ],
    );
    let ours = format!("twolane, limit {limit}");
    for (name, peer) in [
        ("inline", "inline".to_owned()),
        ("spawn_blocking", "spawn_blocking".to_owned()),
        ("limited", limited(limit)),
    ] {
        let health = format!("health_p99_{name}_over_twolane");
        report.ratio(health, "health_p99", &peer, &ours);
        let served = format!("served_twolane_over_{name}");
        report.ratio(served, "served", &ours, &peer);
    }
    report.finish();
}

fn limited(limit: usize) -> String {
    format!("spawn_blocking_limited, limit {limit}")
}

fn contender<'a>(
    name: String,
    mut turn: impl FnMut() -> Result<Sample, BoxError> + 'a,
) -> Contender<'a> {
    Contender::new(name, move || turn().map_err(|error| error.to_string()))
}

fn clients() -> tokio::runtime::Runtime {
    let mut clients = tokio::runtime::Builder::new_current_thread();
    clients.enable_all().build().unwrap()
}

fn under_load(running: &Running, load: Load) -> Result<Sample, BoxError> {
    let (clients, mut sample) = (clients(), Sample::default());
    let url = running.url("/health");
    let asking = thread::spawn(move || load.ask_health(&url));
    clients.block_on(load.offer(running.url("/work"), &mut sample))?;
    let health = asking.join().expect("it returns its errors")?;
    sample.put_latencies("health", health);
    Ok(sample)
}
