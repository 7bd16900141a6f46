//! TPC-H on a Ballista cluster: a scheduler and three executors, as processes on loopback.
//!
//! # The question
//!
//! Executors compute on all cores. How late are their heartbeats and polls, as the scheduler sees
//! them? How late are their Flight services, and how long do the queries take, with Ballista's own
//! executor and with its stages on a lane? And what becomes of a query whose executor is killed?
//!
//! # Contenders
//!
//! Each turn has a fresh cluster: Ballista's own scheduler behind a reverse proxy, which notes when
//! requests arrive, and three executors. The tables are in Parquet on a real S3 server in the
//! process of the bench, which is also Ballista's client.
//!
//! - `pull/builtin`: Ballista's own executor, which polls for tasks; a poll is its heartbeat.
//! - `pull/twolane`: the same, through [`twolane_ballista::on_lane`].
//! - `.., killed`: an executor is killed when all three have had tasks of a query; then another query
//!   runs on the two that are left. (Without Ballista's adaptive planner: see
//!   [`Plan::is_adaptive`].)
//! - `push/..`: the same, and the scheduler hands out the tasks; executors send a heartbeat each
//!   second. They run if a filter names the policy, and in the short form of a test. After a kill,
//!   Ballista's scheduler may then offer no task any more, so that `push/.., killed` may hang,
//!   whichever the executors are: `engines/ballista/UPSTREAM.md`.
//!
//! The rows of each query, in each pass, are compared with those of plain DataFusion, as text: all
//! but the order of the rows has to be the same. They are compared when the query's clock has
//! stopped.
//!
//! # What it is not
//!
//! A cluster on a network. All processes share the cores of one machine, the client and the S3
//! server too.
//!
//! ```text
//! cargo bench -p twolane-ballista --bench cluster               # scale 0.1
//! cargo bench -p twolane-ballista --bench cluster -- --full     # scale 1
//! cargo bench -p twolane-ballista --bench cluster -- 'push/'    # tasks pushed
//! cargo bench -p twolane-ballista --bench cluster -- 'pu../'    # both policies
//! ```

mod cluster;
mod common;
mod executor;
mod flight;
mod kill;
mod process;
mod proxy;
mod scheduler;

use std::cell::{LazyCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use twolane_benches::findings::{Ratio, empty_histogram};
use twolane_benches::{Bench, Column, Contender, Contest, Form, Report, Sample, child};
use twolane_tpch::tables::Store;
use twolane_tpch::{geometric_mean, queries};

use cluster::{Cluster, Plan, Rows, SHORT_TIMEOUT_SECONDS, TIMEOUT_SECONDS, rows};
use common::Policy;
use process::{PATIENCE, Role};

/// For one query.
const LIMIT: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    if let Some(role) = child::role::<Role>() {
        process::run(role);
    }
    let bench = Bench::new("cluster");
    let scale = bench.pick([0.01, 0.03, 0.1, 1.0]);
    let numbers: Vec<usize> = bench.pick([vec![3, 5, 18], all(), all(), all()]);
    let killed: Vec<usize> = bench.pick([vec![5], vec![5, 9], vec![5, 18], all()]);
    let least_gaps = bench.pick([1, 3, 10, 20]);
    let tables = LazyCell::new(|| Tables::fill(scale, &numbers));
    let unequal = RefCell::new(BTreeSet::new());
    let mut contenders = Vec::new();
    for policy in [Policy::Pull, Policy::Push] {
        let prefix = prefix(policy);
        let plan = move |tables: &Tables, is_ours, is_killed| Plan {
            policy,
            is_ours,
            timeout_seconds: if is_killed {
                SHORT_TIMEOUT_SECONDS
            } else {
                TIMEOUT_SECONDS
            },
            is_adaptive: !is_killed,
            access: tables.store.access(),
        };
        for (is_ours, name) in [(false, "builtin"), (true, "twolane")] {
            let (tables, unequal, name) = (&tables, &unequal, format!("{prefix}{name}"));
            contenders.push(Contender::new(name.clone(), move || {
                let plan = plan(tables, is_ours, false);
                let measured = queries_on(&plan, &tables.queries, least_gaps);
                let (sample, others) = measured.map_err(|error| told(&name, &error))?;
                for (number, other) in others {
                    println!("query {number}: {name} has other rows: {other}");
                    unequal.borrow_mut().insert(number);
                }
                Ok(sample)
            }));
        }
        for (is_ours, name) in [(true, "twolane, killed"), (false, "builtin, killed")] {
            // It takes the scheduler seconds to see a loss, and the push policy may hang.
            let fits = match bench.form() {
                Form::Test => is_ours && policy == Policy::Pull,
                Form::Quick => is_ours,
                Form::Usual | Form::Full => true,
            };
            if !fits {
                continue;
            }
            let name = format!("{prefix}{name}");
            let (tables, killed) = (&tables, &killed);
            contenders.push(Contender::new(name.clone(), move || {
                let plan = plan(tables, is_ours, true);
                let of = |number: &usize| {
                    let found = tables.queries.iter().find(|query| query.number == *number);
                    let query = found.expect("one of the queries");
                    (query.sql, &query.rows)
                };
                let outcomes = kill::turn(&plan, &killed.iter().map(of).collect::<Vec<_>>());
                Ok(outcomes.map_err(|error| told(&name, &error))?)
            }));
        }
    }
    contenders.retain(|contender| is_in(&bench, &contender.name));
    let contest = Contest::new(&bench, contenders, [1, 1, 2, 3], PATIENCE);
    contest.report(|report| {
        let found = &report.found;
        for (policy, gap) in GAPS {
            report.table(
                &format!("scale {scale}, {policy:?}; ms between {gap}s, of a Flight request"),
                prefix(policy),
                &[
                    Column::pooled("gap p50", gap, 0.5),
                    Column::pooled("gap p99", gap, 0.99),
                    Column::pooled("gap max", gap, 1.0),
                    Column::pooled("Flight p50", "flight", 0.5),
                    Column::pooled("Flight p99", "flight", 0.99),
                    Column::spread("the queries, s", "queries"),
                    Column::sum("killed, equal", "killed_equal"),
                    Column::sum("error", "killed_error"),
                    Column::spread("until the end, s", "seconds"),
                ],
            );
        }
        let unequal = unequal.borrow();
        ratios(report);
        // Of all that compare; nothing if one of them could not run, or none was to.
        let compared = || found.contenders().filter(|name| !name.ends_with("killed"));
        if compared().next().is_some() && !compared().any(|name| found.is_out(name)) {
            let equal = numbers.len() - unequal.len();
            report.put("results_equal", Ratio::once(equal as f64));
        }
        if !unequal.is_empty() {
            report.fail(format!("queries with other rows: {unequal:?}"));
        }
    })
}

const GAPS: [(Policy, &str); 2] = [(Policy::Pull, "poll"), (Policy::Push, "heartbeat")];

/// The push policy has to be asked for, by a filter that does not match the name without the policy.
/// The short form has both: it kills no executor that has pushed tasks.
fn is_in(bench: &Bench, name: &str) -> bool {
    let without = name.strip_prefix(prefix(Policy::Push));
    without.is_none_or(|name| bench.form() == Form::Test || !bench.wants(name))
}

/// Prints all of an error; its first line is for the table.
fn told(name: &str, error: &str) -> String {
    println!("{name}: {error}");
    error.lines().next().unwrap_or_default().to_owned()
}

fn prefix(policy: Policy) -> &'static str {
    match policy {
        Policy::Push => "push/",
        Policy::Pull => "pull/",
    }
}

fn all() -> Vec<usize> {
    (1..=queries::all().len()).collect()
}

struct Query {
    number: usize,
    sql: &'static str,
    /// Plain DataFusion's.
    rows: Rows,
}

struct Tables {
    store: Store,
    queries: Vec<Query>,
}

impl Tables {
    fn fill(scale: f64, numbers: &[usize]) -> Self {
        let store = Store::fill(scale).expect("the tables on the server");
        let all = queries::all();
        let sql: Vec<&str> = numbers.iter().map(|number| all[number - 1]).collect();
        let rows = cluster::plain(&store.access(), &sql).expect("plain DataFusion's rows");
        let queries = numbers.iter().zip(sql).zip(rows);
        let queries = queries.map(|((number, sql), rows)| Query {
            number: *number,
            sql,
            rows,
        });
        Self {
            store,
            queries: queries.collect(),
        }
    }
}

impl Query {
    /// Where other rows begin to differ.
    fn difference(&self, found: &Rows) -> Option<String> {
        if self.rows == *found {
            return None;
        }
        let mut pairs = self.rows.iter().zip(found);
        let first = pairs.find(|(expected, found)| expected != found);
        let counts = (self.rows.len(), found.len());
        Some(format!("{counts:?} rows, {first:?}"))
    }
}

/// The queries one after the other, so often that each executor has so many gaps; and those that
/// had other rows in a pass.
fn queries_on(
    plan: &Plan,
    queries: &[Query],
    least_gaps: usize,
) -> Result<(Sample, BTreeMap<usize, String>), String> {
    let mut cluster = Cluster::start(plan)?;
    let mut others = BTreeMap::new();
    let mut pass = |cluster: &mut Cluster, seconds: &mut [f64]| {
        for (query, seconds) in queries.iter().zip(seconds) {
            let begin = Instant::now();
            let batches = cluster.query(query.sql, LIMIT)?;
            *seconds += begin.elapsed().as_secs_f64();
            if let Some(other) = query.difference(&rows(&batches)?) {
                others.insert(query.number, other);
            }
        }
        Ok::<_, String>(())
    };
    // Caches are warm afterwards.
    pass(&mut cluster, &mut vec![0.0; queries.len()])?;
    cluster.forget()?;
    let flight = flight::Clients::start(&cluster.flights);
    let (mut seconds, mut passes) = (vec![0.0; queries.len()], 0.0);
    let seen = loop {
        pass(&mut cluster, &mut seconds)?;
        passes += 1.0;
        let seen = cluster.seen()?;
        if seen.gaps.values().all(|gaps| gaps.len() >= least_gaps) {
            break seen;
        }
    };
    cluster.check()?;
    let mut sample = Sample::default();
    sample.put_latencies("flight", flight.stop()?);
    let mut gaps = empty_histogram();
    // A gap that is open still counts as soon as it is too long.
    let interval = Duration::from_secs(executor::INTERVAL_SECONDS).as_nanos() as u64;
    let open = seen.silent.values().filter(|gap| **gap > interval);
    for gap in seen.gaps.values().flatten().chain(open) {
        gaps.saturating_record(*gap);
    }
    let name = GAPS.iter().find(|(policy, _)| *policy == plan.policy);
    sample.put_latencies(name.expect("it is one of them").1, gaps);
    seconds.iter_mut().for_each(|seconds| *seconds /= passes);
    sample.put("queries", "s", seconds.iter().sum());
    sample.put("query_mean", "s", geometric_mean(&seconds));
    for (query, seconds) in queries.iter().zip(&seconds) {
        sample.put(format!("q{:02}", query.number), "s", *seconds);
    }
    Ok((sample, others))
}

fn ratios(report: &Report) {
    let found = &report.found;
    let interval = executor::INTERVAL_SECONDS as f64 * 1000.0;
    for (contender, suffix) in [("push/twolane", ""), ("push/builtin", "_builtin")] {
        let over = found.pooled_ms(contender, "heartbeat", 1.0) / interval;
        let name = format!("heartbeat_gap_max_over_interval{suffix}");
        report.put(name, Ratio::once(over));
    }
    for (prefix, suffix) in [("pull/", ""), ("push/", "_push")] {
        let [builtin, ours] = ["builtin", "twolane"].map(|name| format!("{prefix}{name}"));
        let time = format!("query_time_over_builtin{suffix}");
        report.ratio(time, "query_mean", &ours, &builtin);
        let flight = format!("flight_p99_builtin_over_twolane{suffix}");
        report.ratio(flight, "flight_p99", &builtin, &ours);
    }
    report.ratio(
        "poll_gap_p99_builtin_over_twolane",
        "poll_p99",
        "pull/builtin",
        "pull/twolane",
    );
    for (prefix, suffix) in [("pull/", ""), ("push/", "_push")] {
        for metric in ["killed", "killed_equal", "killed_error", "next_equal"] {
            let sum = found.sum(&format!("{prefix}twolane, killed"), metric);
            report.put(format!("{metric}{suffix}"), Ratio::once(sum));
        }
    }
}
