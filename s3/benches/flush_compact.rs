//! How late are flushes when compactions run beside them, and what do the compactions pay for
//! it? (S2: an LSM engine on object storage.)
//!
//! The engine, its contenders and the S3 server are those of `examples/flush_compact`, the same
//! code: see there for what a flush and a compaction are. The peers: one runtime; one runtime
//! with `spawn_blocking`; two runtimes that share a store; two runtimes with object_store's own
//! `SpawnedReqwestConnector`. Each is measured alone and beside four compactions.
//!
//! Two settings: the server waits for 20 ms before each answer, to stand for a network; and it
//! does not (fewer contenders).
//!
//! "twolane" in the ratios' names is `Backend::Runtime`, which suits futures that wait a lot; the
//! rayon backend has names of its own. Both have High at nice 1 and Low in the idle class
//! (`Builder::nice`, `idle_class_for_low`), which are not the defaults: `engine/contender.rs` says
//! why.
//!
//! What it is not: a measure of S3. The server shares this machine's cores with the contenders,
//! at nice 0. So a contender that gets more compactions done has more of the server's work
//! beside its flushes; and one whose compactions give way, gives way to the server too, as it
//! would not have to for a remote one. Payloads are not hashed, as over TLS (`unsigned_payload`).
//!
//! ```text
//! cargo bench --bench flush_compact                    # three minutes; --full: twelve
//! cargo bench -- 'flush_compact/20 ms/two_runtimes'
//! ```

use std::cell::LazyCell;
use std::time::Duration;

use twolane_benches::findings::empty_histogram;
use twolane_benches::{Bench, Column, Contender, Contest, Findings, Report, Sample};
use twolane_s3::engine::contender::Contender as Side;
use twolane_s3::engine::slice::{Bench as Engine, Load, Operation, Slice};
use twolane_s3::server;

/// How long the server waits, and its contenders: without a network, those whose ratio is
/// asked for.
const SETTINGS: [(u64, &[Side]); 2] = [
    (20, &Side::ALL),
    (0, &[Side::OneRuntime, Side::TwoRuntimes, Side::Twolane]),
];

fn main() {
    let bench = Bench::new("flush_compact");
    let measured = Duration::from_millis(bench.pick([300, 1_000, 3_000, 5_000]));
    let engines = SETTINGS.map(|(latency_ms, _)| {
        LazyCell::new(move || {
            let latency = Duration::from_millis(latency_ms);
            let (server, access) = server::from_environment(latency).unwrap();
            (Engine::new(access, true).unwrap(), server)
        })
    });
    let mut contenders = Vec::new();
    for ((latency_ms, sides), engine) in SETTINGS.iter().zip(&engines) {
        for side in *sides {
            for load in [Load::Alone, Load::Busy] {
                let turn = move || {
                    let (engine, server) = &**engine;
                    if server.is_none() && *latency_ms != 20 {
                        return Err("the server's latency is its own".to_owned());
                    }
                    // An error is a lost row, or worse: that ends the bench.
                    Ok(sample(&engine.slice(*side, load, measured).unwrap()))
                };
                contenders.push(Contender::new(name(*latency_ms, *side, load), turn));
            }
        }
    }
    let found = bench.run(Contest {
        contenders,
        rounds: bench.rounds([1, 1, 2, 5]),
        warm_up: false,
        ends_threads: false,
        // Its backlog comes on top, and reading all of it back.
        bound: measured + Duration::from_secs(120),
    });
    let Some(found) = found else { return };

    let mut report = Report::new(bench.name, &found);
    for (latency_ms, sides) in SETTINGS {
        report.table(
            &format!("flushes, ms; the server waits for {latency_ms} ms before each answer"),
            &format!("{latency_ms} ms/"),
            &[
                Column::sum("flushes", "flushes"),
                Column::pooled("p50", "flush", 0.5),
                Column::pooled("p99", "flush", 0.99),
                Column::pooled("max", "flush", 1.0),
                Column::spread("compactions/s", "compactions"),
                Column::median("others", "others"),
            ],
        );
        ratios(&found, latency_ms, sides, &mut report);
    }
    report.finish();
}

fn name(latency_ms: u64, side: Side, load: Load) -> String {
    let load = match load {
        Load::Alone => "alone",
        Load::Busy => "busy",
    };
    format!("{latency_ms} ms/{}/{load}", side.key())
}

fn sample(slice: &Slice) -> Sample {
    let mut latencies = empty_histogram();
    for took_ms in slice.flushes.iter().map(Operation::took_ms) {
        latencies.saturating_record((took_ms * 1e6) as u64);
    }
    let mut sample = Sample::default();
    sample.put("flushes", "", slice.flushes.len() as f64);
    sample.put_latencies("flush", latencies);
    if !slice.compactions.is_empty() {
        sample.put("compactions", "1/s", slice.compactions_per_s());
    }
    sample
}

fn ratios(found: &Findings, latency_ms: u64, sides: &[Side], report: &mut Report<'_>) {
    let at = match latency_ms {
        20 => String::new(),
        other => format!("_at_{other}_ms"),
    };
    let name = |side, load| name(latency_ms, side, load);
    let ours = name(Side::Twolane, Load::Busy);
    let peers = sides.iter().filter(|side| side.is_peer());
    for side in sides {
        let suffix = match side {
            Side::Twolane => String::new(),
            other => format!("_{}", other.key()),
        };
        let [busy, alone] = [Load::Busy, Load::Alone].map(|load| name(*side, load));
        for p in ["p50", "p99"] {
            let ratio = format!("flush_{p}_busy_over_alone{suffix}{at}");
            report.ratio(ratio, &format!("flush_{p}"), &busy, &alone);
        }
    }
    for peer in peers.clone() {
        let ratio = format!("flush_p99_{}_over_twolane{at}", peer.key());
        report.ratio(ratio, "flush_p99", &name(*peer, Load::Busy), &ours);
    }
    // The best of all rounds, as a peer, not each round's luckiest one.
    let peers = peers.map(|peer| name(*peer, Load::Busy));
    let rate = |name: &String| found.median(name, "compactions");
    let best = peers
        .max_by(|a, b| rate(a).total_cmp(&rate(b)))
        .expect("there are peers");
    for side in [Side::Twolane, Side::TwolaneRayon] {
        let ratio = format!("compaction_throughput_{}_over_best_peer{at}", side.key());
        report.ratio(ratio, "compactions", &name(side, Load::Busy), &best);
    }
}
