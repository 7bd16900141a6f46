//! How late are a service's timers while slatedb flushes and compacts beside it?
//!
//! An incident of others (slatedb's issue 1963): on two cores a Tokio timer was late by 848 ms at
//! the p99, and a raw thread by 3.6 ms. Its authors added yields to their code. This bench has the
//! version before them, unmodified, and the one with them.
//!
//! Eight tasks of a service write rows of 1 KiB, and no write waits for the store. Then they wait
//! until the rows are compacted: until fewer than four L0 files are left. All contenders look for
//! compactions each 50 ms (slatedb's default is 5 s). Meanwhile two sentinels wait for timers of
//! 1 ms: a task of the service's runtime, and a thread of its own. Then all rows are read back. Each
//! turn is a process of its own. The store is memory, or the S3 server of the tests, which has a
//! process of its own.
//!
//! - `one_runtime`: all on the service's runtime. `one_runtime_cured`: version 0.18, which yields.
//! - `two_runtimes`: compaction and garbage collection on a second runtime
//!   (`CompactorBuilder::with_runtime`, `DbBuilder::with_gc_runtime`). `nice16`: that at nice 16.
//! - `nice16_whole`: the database is opened on that one, so that it also writes its log and its
//!   L0 files there. `nice16_whole_cured`: the same with version 0.18.
//! - `twolane_compaction`, `twolane`: the same two with a lane, by `Handle::tokio_handle`.
//!   `twolane_cured`: `twolane` with version 0.18. `twolane_cured_writes`: the same, with the task
//!   that takes writes on the service's runtime (`DbBuilder::with_write_runtime`, which its authors
//!   mean for a current-thread runtime).
//! - `floor`: no database. A thread wakes a task of the service now and then, which makes rows. Tokio
//!   sleeps whole milliseconds: if a wake-up makes it park between two ticks, it oversleeps the next
//!   one by up to 1 ms.
//!
//! What it is not:
//!
//! - a measure of S3, whose server shares the cores, at nice 16. Contenders that compute at nice 0
//!   take the cores from it, and the others share them with it;
//! - an open loop: the writers wait for the database, so a slower contender has less load;
//! - equal to the last file: zero to three L0 files may be left uncompacted;
//! - a measure of reads, or of a machine with cores to spare, where the second runtime would not
//!   compete with the first.
//!
//! ```text
//! cargo bench -p twolane-slatedb --features before_the_cure --bench slatedb            # 14 minutes; --full: 35
//! cargo bench -p twolane-slatedb --features before_the_cure --bench slatedb -- memory/
//! ```

mod contender;
mod engine;
mod rows;
mod s3;
mod sentinels;

use std::cell::LazyCell;
use std::process::ExitCode;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use twolane_benches::findings::empty_histogram;
use twolane_benches::{Bench, Column, Contest, Sample, child};

use contender::{Access, Contender, World};
use rows::Rows;
use sentinels::Sentinels;

#[derive(Serialize, Deserialize)]
enum Role {
    Server,
    Turn(Contender, Access, usize),
}

#[derive(Serialize, Deserialize)]
struct Answer {
    /// How late the sentinels were, in nanoseconds, and how often.
    task: Vec<(u64, u64)>,
    thread: Vec<(u64, u64)>,
    written: Option<Written>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    megabytes_per_s: f64,
    compacted_megabytes_per_s: f64,
}

fn main() -> ExitCode {
    match child::role() {
        Some(Role::Server) => {
            s3::serve();
            ExitCode::SUCCESS
        }
        Some(Role::Turn(contender, access, megabytes)) => {
            child::answer(&turn(contender, &access, megabytes))
        }
        None => bench(),
    }
}

fn bench() -> ExitCode {
    let bench = Bench::new("slatedb");
    let server = LazyCell::new(|| s3::Server::start(&Role::Server));
    let mut contenders = Vec::new();
    // From 300 on it compacts.
    let stores = [
        ("memory", bench.pick([4, 300, 600, 600])),
        ("s3", bench.pick([4, 4, 300, 300])),
    ];
    for (store, megabytes) in stores {
        for contender in Contender::ALL {
            if store == "s3" && contender == Contender::Floor {
                continue;
            }
            let server = &server;
            let turn = move || {
                let access = (store == "s3").then(|| server.access());
                let answer: Answer = child::ask(&Role::Turn(contender, access, megabytes))?;
                Ok(sample(&answer))
            };
            let name = format!("{store}/{}", contender.key());
            contenders.push(twolane_benches::Contender::new(name, turn));
        }
    }
    let contest = Contest::new(&bench, contenders, [1, 1, 2, 5], Duration::from_secs(300));
    contest.report(|report| {
        let found = &report.found;
        for (store, _) in stores {
            report.table(
                &format!("late by, ms; the store: {store}"),
                &format!("{store}/"),
                &[
                    Column::pooled("timer p50", "task", 0.5),
                    Column::pooled("timer p99", "task", 0.99),
                    Column::pooled("timer max", "task", 1.0),
                    Column::pooled("thread p99", "thread", 0.99),
                    Column::spread("MB/s", "written"),
                    Column::spread("compacted, MB/s", "compacted"),
                ],
            );
            let name = |contender: Contender| format!("{store}/{}", contender.key());
            let suffix = if store == "s3" { "_s3" } else { "" };
            let ours = name(Contender::Twolane);
            let peers = Contender::ALL[..6].iter();
            for peer in peers.clone() {
                // Of the same version.
                let ours = match peer.is_cured() {
                    true => Contender::TwolaneCured,
                    false => Contender::Twolane,
                };
                let ratio = format!("timer_p99_{}_over_{}{suffix}", peer.key(), ours.key());
                report.ratio(ratio, "task_p99", &name(*peer), &name(ours));
            }
            report.put(
                format!("timer_p99_ms_twolane{suffix}"),
                found.value("task_p99", &ours),
            );
            if store == "memory" {
                let floor = name(Contender::Floor);
                report.ratio("timer_p99_twolane_over_floor", "task_p99", &ours, &floor);
            }
            report.put(
                format!("thread_p99_ms_twolane{suffix}"),
                found.value("thread_p99", &ours),
            );
            let rate = |contender: &Contender| found.median(&name(*contender), "written");
            // Of the same version: the later one writes faster, on a lane too.
            let best = peers
                .filter(|peer| !peer.is_cured())
                // Of one that was not run.
                .filter(|peer| !rate(peer).is_nan())
                .max_by(|a, b| rate(a).total_cmp(&rate(b)));
            if let Some(best) = best {
                let ratio = format!("write_throughput_twolane_over_best{suffix}");
                report.ratio(ratio, "written", &ours, &name(*best));
            }
            let (on_lane, cured) = (Contender::TwolaneCured, Contender::OneRuntimeCured);
            let ratio = format!("write_throughput_twolane_cured_over_cured{suffix}");
            report.ratio(ratio, "written", &name(on_lane), &name(cured));
        }
    })
}

fn sample(answer: &Answer) -> Sample {
    let read = |late: &[(u64, u64)]| {
        let mut histogram = empty_histogram();
        for (nanos, times) in late {
            histogram.saturating_record_n(*nanos, *times);
        }
        histogram
    };
    let mut sample = Sample::default();
    sample.put_latencies("task", read(&answer.task));
    sample.put_latencies("thread", read(&answer.thread));
    if let Some(written) = &answer.written {
        sample.put("written", "MB/s", written.megabytes_per_s);
        sample.put("compacted", "MB/s", written.compacted_megabytes_per_s);
    }
    sample
}

/// # Panics
///
/// If the database fails, or a row is not there: that ends the turn, and the bench says so.
fn turn(contender: Contender, access: &Access, megabytes: usize) -> Answer {
    // object_store's client wants it, whatever the server speaks.
    twolane_s3::server::install_cryptography();
    let world = World::new(contender, access).unwrap();
    let rows = Rows::of_megabytes(megabytes);
    let (store, runtimes) = (world.store.clone(), world.runtimes.clone());
    let service = world.service.handle().clone();
    // As a handler would be: on a worker.
    let measured = world.service.spawn(async move {
        macro_rules! measure {
            ($version:ident) => {{
                let db = engine::$version::open(store.clone(), &runtimes)
                    .await
                    .unwrap();
                let sentinels = Sentinels::start(&service).await;
                let written = engine::$version::write(&db, rows).await.unwrap();
                let late = sentinels.stop().await;
                engine::$version::check(&db, rows, &*store).await.unwrap();
                let megabytes = (rows.n * rows::VALUE) as f64 / 1e6;
                let written = Written {
                    megabytes_per_s: megabytes / written.seconds,
                    compacted_megabytes_per_s: megabytes / written.compacted_seconds,
                };
                (Some(written), late)
            }};
        }
        match contender {
            Contender::Floor => (None, sentinels::floor(&service, rows).await),
            cured if cured.is_cured() => measure!(cured),
            _ => measure!(released),
        }
    });
    let (written, (task, thread)) = world.service.block_on(measured).unwrap();
    world.end();
    Answer {
        task: counts(&task),
        thread: counts(&thread),
        written,
    }
}

fn counts(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    let recorded = histogram.iter_recorded();
    recorded
        .map(|of| (of.value_iterated_to(), of.count_at_value()))
        .collect()
}
