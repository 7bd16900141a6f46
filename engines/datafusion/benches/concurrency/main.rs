//! More queries than cores in one service: the 22 of TPC-H on DataFusion, by many clients.
//!
//! # The question
//!
//! Clients ask a service for queries over HTTP, so many at a time as the service has cores, and
//! two, four and eight times as many. The tables are in memory, and the queries share a bounded
//! memory pool. How many queries does the service answer in a second, how late are they, how much
//! memory does it take, and how late is its health check? ([DataFusion's issue 10229][issue] asks
//! for such a bench.)
//!
//! # Contenders
//!
//! Each turn has a process of its own, with an I/O runtime that serves HTTP:
//!
//! - `one_runtime`: the handler awaits the query.
//! - `two_runtimes`: the query is a task of a second runtime.
//! - `two_semaphore`: the same, and the handler waits for one of as many permits as there are
//!   cores. `two_semaphore_nice16`: the threads of its second runtime are niced, as those of a CPU
//!   lane are.
//! - `twolane`: [`twolane_datafusion::run_on`] on a lane with as many permits as there are cores.
//!   The handler waits for one by `Handle::reserve`.
//! - `unticked`: the same in a process that never ticks ([`giveway::tick_each`]).
//!
//! # The turn
//!
//! - The clients take queries from one list, all 22 in a shuffled order, and again in another. All
//!   contenders of a round have the same list.
//! - A query that finds no memory counts as failed, and its client takes the next one. (If clients
//!   ask again at once, the contenders without a limit do not get out: the pool stays full.)
//!   Throughput counts answers. A contender with a failed query has done less than the others, so
//!   that no ratio takes it for the best. The bench compares all answers with plain DataFusion's.
//! - Another process asks for `/health` every 2 ms. It counts from when a request was due.
//! - Peak memory is the most that is resident in the service's process after its warm-up, the
//!   tables included. The pool's peak is the most that queries have reserved.
//!
//! # What it does not measure
//!
//! Not an audited TPC-H: no refreshes, validation parameters, a small scale. No clients that go
//! away, no answers that are larger than their readers take (the answers are whole), no files and
//! no object store. The clients run on the same cores as the service, so that throughput is that
//! of both. The clients have one query at a time: if the service is slow, they ask for less.
//!
//! ```text
//! cargo bench -p twolane-datafusion --bench concurrency             # scale 0.1
//! cargo bench -p twolane-datafusion --bench concurrency -- --full   # twice as many queries
//! cargo bench -p twolane-datafusion --bench concurrency -- '8x/'    # 8 times the cores alone
//! ```
//!
//! [issue]: https://github.com/apache/datafusion/issues/10229

#[path = "../shared/process.rs"]
mod children;
mod clients;
mod contender;
#[path = "../shared/health.rs"]
mod health;
mod memory;
#[path = "../shared/plain.rs"]
mod plain;
mod probe;
mod service;

use std::cell::{LazyCell, RefCell};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twolane_benches::{
    Bench, Column, Contender as Turn, Contest, Form, Report, Sample, child, cores,
};

use children::{Process, text};
use clients::Work;
use contender::Contender;
use probe::Probe;

#[derive(Serialize, Deserialize)]
enum Role {
    Service(service::Role),
    Probe(SocketAddr),
}

/// How many clients there are for each core.
const LOADS: [usize; 4] = [1, 2, 4, 8];
/// The size of the pool for each core, in MiB: one query for each core has room, and eight do not.
const POOL_AT_SCALE_1: f64 = 600.0;
/// And for each partition of such a query, at any scale: what a sort reserves.
const POOL_OF_PARTITION: f64 = 10.0;
/// For one turn, at the largest scale.
const PATIENCE: Duration = Duration::from_secs(600);
const MB: f64 = 1e6;
const NOT_MEASURED: &str = "an audited TPC-H, clients that go away or read slowly, files, an object \
                            store; the clients share the service's cores";

fn main() -> ExitCode {
    match child::role::<Role>() {
        Some(Role::Service(role)) => service::run(role),
        Some(Role::Probe(address)) => probe::run(address),
        None => {}
    }
    let bench = Bench::new("concurrency");
    let scale = bench.pick([0.01, 0.03, 0.1, 0.1]);
    // Some seconds: the p99 of /health is of a thousand requests at least.
    let passes = bench.pick([1, 4, 8 * cores(), 16 * cores()]);
    let bytes = pool(scale);
    let loads = bench.pick([&LOADS[3..], &LOADS[..], &LOADS[..], &LOADS[..]]);
    let plain = LazyCell::new(|| plain::digests(scale).expect("plain DataFusion's rows"));
    let unequal = RefCell::new(BTreeSet::<usize>::new());
    let mut contenders = Vec::new();
    for load in loads.iter().copied() {
        for contender in Contender::ALL {
            let name = format!("{load}x/{}", contender.name());
            let (plain, unequal, mut seed) = (&plain, &unequal, 0);
            contenders.push(Turn::new(name.clone(), move || {
                seed += 1;
                let clients = load * cores();
                let work = Work {
                    clients,
                    passes,
                    seed,
                };
                let folder = tempfile::tempdir().map_err(text)?;
                let role = service::Role {
                    contender,
                    scale,
                    bytes,
                    folder: folder.path().to_owned(),
                };
                let (sample, others) = turn(role, work, plain)?;
                for number in &others {
                    println!("query {number}: {name} has other rows");
                }
                unequal.borrow_mut().extend(others);
                Ok(sample)
            }));
        }
    }
    let contest = Contest::new(&bench, contenders, [1, 1, 5, 5], PATIENCE);
    contest.report(|report| {
        println!("\nnot measured: {NOT_MEASURED}");
        let found = &report.found;
        for load in loads {
            let (clients, mb) = (load * cores(), bytes as f64 / MB);
            report.table(
                &format!("{clients} clients; scale {scale}, a pool of {mb:.0} MB; latencies in ms"),
                &format!("{load}x/"),
                &[
                    Column::spread("queries/s", "throughput"),
                    Column::pooled("query p50", "query", 0.5),
                    Column::pooled("p99", "query", 0.99),
                    Column::sum("failed", "failed"),
                    Column::pooled("/health p50", "health", 0.5),
                    Column::pooled("p99", "health", 0.99),
                    Column::spread("peak memory, MB", "peak_memory"),
                    Column::spread("of the pool, MB", "peak_pool"),
                ],
            );
            ratios(*load, report);
        }
        // In the short form there is memory for all.
        for ours in found.contenders().filter(|name| name.ends_with("/twolane")) {
            if bench.form() == Form::Test && found.sum(ours, "failed") > 0.0 {
                report.fail(format!("{ours}: queries without memory"));
            }
        }
        plain::compare(report, &unequal.borrow());
    })
}

/// In bytes. A query has as many partitions as there are cores.
fn pool(scale: f64) -> usize {
    let cores = cores() as f64;
    let mib = cores * (POOL_OF_PARTITION * cores + POOL_AT_SCALE_1 * scale);
    mib as usize * (1 << 20)
}

/// The sample, and the numbers of the queries that had other rows than plain DataFusion's.
fn turn(
    role: service::Role,
    work: Work,
    plain: &[u64],
) -> Result<(Sample, BTreeSet<usize>), String> {
    let mut service = Process::start(&Role::Service(role))?;
    let address = service.line()?.trim().parse().map_err(text)?;
    let probe = Probe::start(address)?;
    let seen = clients::ask(address, work);
    let health = probe.stop();
    let (seen, health) = (seen?, health?);
    let answered = seen.latencies.len();
    let mut sample = Sample::default();
    sample.put_latencies("health", health);
    sample.put("throughput", "1/s", answered as f64 / seen.seconds);
    sample.put("failed", "count", seen.failed as f64);
    let resident = seen.figures.most_resident;
    let resident = resident.map_or(f64::NAN, |bytes| bytes as f64 / MB);
    sample.put("peak_memory", "MB", resident);
    let reserved = seen.figures.most_reserved as f64 / MB;
    sample.put("peak_pool", "MB", reserved);
    let unequal = seen.unequal(plain).map_err(text)?;
    sample.put_latencies("query", seen.latencies);
    Ok((sample, unequal))
}

/// Those of 8 clients for each core have no suffix.
fn ratios(load: usize, report: &Report) {
    let found = &report.found;
    let suffix = match load {
        8 => String::new(),
        load => format!("_at_{load}x"),
    };
    let of = |contender: Contender| format!("{load}x/{}", contender.name());
    let ours = of(Contender::Twolane);
    for (name, peer) in [
        ("plain", Contender::OneRuntime),
        ("semaphore", Contender::TwoSemaphore),
        ("nice16", Contender::TwoSemaphoreNiced),
    ] {
        let name = format!("health_p99_{name}_over_twolane{suffix}");
        report.ratio(name, "health_p99", &of(peer), &ours);
    }
    let peers = Contender::ALL.into_iter();
    let peers: Vec<_> = peers.map(of).filter(|peer| *peer != ours).collect();
    let mut peers: Vec<_> = peers.iter().map(String::as_str).collect();
    // Those that have done all that ours has.
    peers.retain(|peer| found.sum(peer, "failed") == 0.0);
    let throughput = |peer: &&str| found.median(peer, "throughput");
    let best = peers.iter().copied();
    if let Some(best) = best.max_by(|a, b| throughput(a).total_cmp(&throughput(b))) {
        let name = format!("throughput_twolane_over_best{suffix}");
        report.ratio(name, "throughput", &ours, best);
    }
    let name = format!("peak_memory_twolane_over_best{suffix}");
    report.put(name, found.over_least("peak_memory", &ours, &peers));
    let name = format!("query_p99_semaphore_over_twolane{suffix}");
    report.ratio(name, "query_p99", &of(Contender::TwoSemaphore), &ours);
}
