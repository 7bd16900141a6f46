//! The 22 queries of TPC-H on DataFusion, in a service that also answers `/health`.
//!
//! # The question
//!
//! A service runs queries on all cores. How late is its health check, which another process
//! asks for every 2 ms, and how long do the queries take, compared with what users build by
//! hand? And do all of them return plain DataFusion's rows, each time?
//!
//! # Contenders
//!
//! Each is a process of its own, with an I/O runtime that serves `/health`, and two copies of
//! each query at a time:
//!
//! - `plain`: the queries are tasks of that runtime.
//! - `two runtimes`: they are tasks of a second runtime; `.., nice 16`: whose threads are niced,
//!   as the threads of a CPU lane are.
//! - `twolane`: [`twolane_datafusion::run_on`].
//! - `a plain job`: a job of a lane, without this package: its tasks compute on the I/O runtime,
//!   and that shows.
//! - `by the default`: [`twolane_datafusion::LaneTracer`] and a process-wide default handle, with
//!   the query itself on the I/O runtime. Each of its tasks is a job.
//!
//! The tables are in memory, or in Parquet on a real S3 server, in the process of the bench. There
//! `two runtimes` has object_store's `SpawnedReqwestConnector`, and `twolane` its `IoConnector`.
//!
//! # What it is not
//!
//! An audited TPC-H: one stream, no refreshes, validation parameters, a small scale.
//!
//! ```text
//! cargo bench -p twolane-datafusion --bench tpch               # scale 0.1
//! cargo bench -p twolane-datafusion --bench tpch -- --full     # scale 1
//! cargo bench -p twolane-datafusion --bench tpch -- 'memory/'
//! ```

#[path = "../shared/process.rs"]
mod children;
mod contender;
#[path = "../shared/health.rs"]
mod health;
#[path = "../shared/plain.rs"]
mod plain;
mod process;
mod service;
mod tables;

use std::cell::{LazyCell, RefCell};
use std::collections::BTreeSet;
use std::process::ExitCode;

use twolane_benches::{Bench, Column, Contender as Turn, Contest, Report, Sample, child};
use twolane_tpch::geometric_mean;
use twolane_tpch::tables::Store;

use contender::{Contender, Place};
use process::{Answer, Role, Work};

fn main() -> ExitCode {
    if let Some(role) = child::role::<Role>() {
        service::run(role);
    }
    let bench = Bench::new("tpch");
    let scale = bench.pick([0.01, 0.03, 0.1, 1.0]);
    // Some seconds: the p99 of /health is of a thousand requests at least.
    let passes = bench.pick([1, 1, 8, 3]);
    let store = LazyCell::new(|| Store::fill(scale).expect("the tables on the server"));
    let plain = LazyCell::new(|| plain::digests(scale).expect("plain DataFusion's rows"));
    let unequal = RefCell::new(BTreeSet::<usize>::new());
    let ask = |name: &str, contender, access, work| {
        let (answer, health) = process::ask(&Role {
            contender,
            access,
            scale,
            plain: plain.clone(),
            work,
        })?;
        for number in &answer.unequal {
            println!("query {number}: {name} has other rows");
        }
        unequal.borrow_mut().extend(&answer.unequal);
        Ok::<_, String>((answer, health))
    };
    let mut contenders = Vec::new();
    for (place, prefix) in PLACES {
        for contender in Contender::of(place) {
            let name = format!("{prefix}{}", contender.name());
            let (ask, store) = (&ask, &store);
            contenders.push(Turn::new(name.clone(), move || {
                let access = (place == Place::S3).then(|| store.access());
                let (answer, health) = ask(&name, contender, access, Work::Queries { passes })?;
                Ok(sample(&answer, health))
            }));
        }
    }
    let times = bench.pick([1, 1, 3, 5]);
    contenders.push(Turn::new(PRIORITIES, || {
        let work = Work::Priorities { times };
        let (answer, _) = ask(PRIORITIES, Contender::Twolane, None, work)?;
        let mut sample = Sample::default();
        sample.put("beside_over_alone", "", geometric_mean(&answer.seconds));
        Ok(sample)
    }));
    let contest = Contest::new(&bench, contenders, [1, 1, 5, 5], process::PATIENCE);
    contest.report(|report| {
        for (title, (_, prefix)) in ["in memory", "Parquet on S3"].into_iter().zip(PLACES) {
            report.table(
                &format!("scale {scale}, {title}; /health from another process, ms"),
                prefix,
                &[
                    Column::pooled("p50", "health", 0.5),
                    Column::pooled("p99", "health", 0.99),
                    Column::pooled("max", "health", 1.0),
                    Column::spread("22 queries, s", "queries"),
                    Column::spread("of the CPU time on I/O threads", "io_cpu"),
                ],
            );
        }
        ratios(report);
        plain::compare(report, &unequal.borrow());
    })
}

const PLACES: [(Place, &str); 2] = [(Place::Memory, "memory/"), (Place::S3, "s3/")];
const PRIORITIES: &str = "High beside four Low";

fn sample(answer: &Answer, health: hdrhistogram::Histogram<u64>) -> Sample {
    let mut sample = Sample::default();
    sample.put_latencies("health", health);
    sample.put("queries", "s", answer.seconds.iter().sum());
    sample.put("query_mean", "s", geometric_mean(&answer.seconds));
    sample.put("io_cpu", "of all", answer.io_cpu);
    for (number, seconds) in (1..).zip(&answer.seconds) {
        sample.put(format!("q{number:02}"), "s", *seconds);
    }
    sample
}

fn ratios(report: &Report) {
    let found = &report.found;
    for (place, suffix) in [("memory", ""), ("s3", "_s3")] {
        let [plain, two, ours] =
            ["plain", "two runtimes", "twolane"].map(|name| format!("{place}/{name}"));
        let p99 = |over, name: &str| {
            report.ratio(format!("{name}{suffix}"), "health_p99", over, &ours);
        };
        p99(&plain, "health_p99_plain_over_twolane");
        p99(&two, "health_p99_two_runtimes_over_twolane");
        let time = format!("query_time_twolane_over_two_runtimes{suffix}");
        report.ratio(time, "query_mean", &ours, &two);
        report.put(
            format!("cpu_on_io_lane{suffix}"),
            found.value("io_cpu", &ours),
        );
    }
    report.put(
        "high_beside_four_low_over_alone",
        found.value("beside_over_alone", PRIORITIES),
    );
}
