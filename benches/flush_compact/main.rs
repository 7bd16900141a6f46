//! How late are flushes when compactions run beside them, and what do the compactions pay for
//! it? (S2: an LSM engine on object storage.)
//!
//! A time-series engine writes to object storage: small *flushes* of what was just inserted,
//! which a client waits for, and large *compactions* in the background. When compactions pile
//! up, the latency of flushes jumps, though the two run in different thread pools. Where does it
//! come from, and what keeps it down? (From the authors of CeresDB, 2023.)
//!
//! Bursts of 4 flushes each 100 ms (sort, encode, put 256 KiB: 6 ms of CPU), beside 4
//! compactions (8 range gets of 512 KiB, decode, merge, encode: 200 ms of CPU, multipart put of
//! 4 MiB), by these contenders (`lab/s3/src/engine/contender.rs`):
//!
//! - `one_runtime`: one Tokio runtime for all; `spawn_blocking`: the CPU parts in its pool;
//! - `two_runtimes`: one for flushes and one for compactions, that share a store;
//! - `spawned_connector`: the same with object_store's own `SpawnedReqwestConnector`;
//! - `twolane`: one CPU lane, flushes at `High` and compactions at `Low`, and the requests on the
//!   I/O lane by `IoConnector`. (Not with the default weights: High at nice 1, Low in the idle
//!   class.) It also runs without compactions (`alone`).
//!
//! In the full form `spawn_blocking` is there too, and all run alone.
//!
//! All that was written is read back and compared: not a row lost or doubled.
//!
//! What it is not: a measure of S3. The server (`s3s-fs`) is in this process and waits for 20 ms
//! before each answer, to stand for a network. It shares the cores with the contenders, at nice 0:
//! more compactions mean more of the server's work beside the flushes, and what gives way, gives
//! way to the server too. Payloads are not hashed, as over TLS (`unsigned_payload`).
//!
//! `TWOLANE_S3_ENDPOINT`, `TWOLANE_S3_BUCKET` and the usual `AWS_*` variables point it at another
//! server; `TWOLANE_WITHOUT_IDLE_CLASS` leaves twolane's compactions in the usual class.
//!
//! ```text
//! cargo bench --bench flush_compact           # a minute; --full: eight
//! cargo bench --bench flush_compact -- two_runtimes
//! ```

use std::cell::LazyCell;
use std::process::ExitCode;
use std::time::Duration;

use twolane_benches::findings::empty_histogram;
use twolane_benches::{Bench, Column, Contender, Contest, Form, Report, Sample};
use twolane_s3::engine::contender::Contender as Side;
use twolane_s3::engine::slice::{Bench as Engine, Load, Operation, Slice};
use twolane_s3::server;

const LATENCY: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    let bench = Bench::new("flush_compact");
    let measured = Duration::from_millis(bench.pick([300, 1_000, 3_000, 5_000]));
    let engine = LazyCell::new(|| {
        let (server, access) = server::from_environment(LATENCY).unwrap();
        let idle_class = std::env::var_os("TWOLANE_WITHOUT_IDLE_CLASS").is_none();
        (Engine::new(access, idle_class).unwrap(), server)
    });
    let mut contenders = Vec::new();
    for side in Side::ALL {
        for load in [Load::Alone, Load::Busy] {
            let is_usual = match load {
                Load::Alone => side == Side::Twolane,
                Load::Busy => side != Side::SpawnBlocking,
            };
            if !is_usual && bench.form() != Form::Full {
                continue;
            }
            let engine = &engine;
            // An error is a lost row, or worse: that ends the bench.
            let turn = move || Ok(sample(&engine.0.slice(side, load, measured).unwrap()));
            contenders.push(Contender::new(name(side, load), turn));
        }
    }
    // Its backlog comes on top, and reading all of it back.
    let contest = Contest::new(
        &bench,
        contenders,
        [1, 1, 2, 5],
        measured + Duration::from_secs(120),
    );
    contest.report(|report| {
        report.table(
            &format!("flushes, ms; the server waits for {LATENCY:?} before each answer"),
            "",
            &[
                Column::sum("flushes", "flushes"),
                Column::pooled("p50", "flush", 0.5),
                Column::pooled("p99", "flush", 0.99),
                Column::pooled("max", "flush", 1.0),
                Column::spread("compactions/s", "compactions"),
            ],
        );
        let found = &report.found;
        let rows: f64 = found.contenders().map(|one| found.sum(one, "rows")).sum();
        let millions = rows / 1e6;
        println!("\nread back and compared: {millions:.1} million rows, none lost, none doubled");
        ratios(report);
    })
}

fn name(side: Side, load: Load) -> String {
    let load = match load {
        Load::Alone => "alone",
        Load::Busy => "busy",
    };
    format!("{}/{load}", side.key())
}

fn sample(slice: &Slice) -> Sample {
    let mut latencies = empty_histogram();
    for took_ms in slice.flushes.iter().map(Operation::took_ms) {
        latencies.saturating_record((took_ms * 1e6) as u64);
    }
    let mut sample = Sample::of("flushes", "", slice.flushes.len() as f64);
    sample.put("rows", "", slice.rows_verified as f64);
    sample.put_latencies("flush", latencies);
    if !slice.compactions.is_empty() {
        sample.put("compactions", "1/s", slice.compactions_per_s());
    }
    sample
}

fn ratios(report: &Report) {
    let ours = name(Side::Twolane, Load::Busy);
    let peers = Side::ALL.into_iter().filter(|side| side.is_peer());
    for side in Side::ALL {
        let suffix = match side {
            Side::Twolane => String::new(),
            other => format!("_{}", other.key()),
        };
        let [busy, alone] = [Load::Busy, Load::Alone].map(|load| name(side, load));
        for p in ["p50", "p99"] {
            let ratio = format!("flush_{p}_busy_over_alone{suffix}");
            report.ratio(ratio, &format!("flush_{p}"), &busy, &alone);
        }
    }
    for peer in peers.clone() {
        let ratio = format!("flush_p99_{}_over_twolane", peer.key());
        report.ratio(ratio, "flush_p99", &name(peer, Load::Busy), &ours);
    }
    // The best of all rounds, as a peer, not each round's luckiest one.
    let peers: Vec<String> = peers.map(|peer| name(peer, Load::Busy)).collect();
    let over_best = report.found.over_most("compactions", &ours, &peers);
    report.put("compaction_throughput_twolane_over_best_peer", over_best);
}
