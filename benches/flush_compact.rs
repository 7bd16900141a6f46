//! How late are flushes when compactions run beside them, and what do the
//! compactions pay for it? (S2: an LSM engine on object storage.)
//!
//! The engine, its contenders and the S3 server are those of
//! `examples/flush_compact`, the same code: see there for what a flush and a
//! compaction are. The peers: one runtime; one runtime with `spawn_blocking`;
//! two runtimes that share a store; two runtimes with object_store's own
//! `SpawnedReqwestConnector`.
//!
//! Two settings: the server waits for 20 ms before each answer, to stand for a
//! network; and it does not. A ratio is the median of the rounds' own ratios.
//!
//! "twolane" in the ratios' names is `Backend::Runtime`, which suits futures
//! that wait a lot; the rayon backend has names of its own. Both have High at
//! nice 1 and Low in the idle class (`Builder::nice`, `idle_class_for_low`),
//! which are not the defaults: `engine/contender.rs` says why. Without the
//! feature `idle-class` Low is at nice 19, as with `--without-idle-class`.
//!
//! What it is not: a measure of S3. The server shares this machine's cores with
//! the contenders, at nice 0. So a contender that gets more compactions done has
//! more of the server's work beside its flushes; and one whose compactions give
//! way, gives way to the server too, as it would not have to for a remote one.
//! Payloads are not hashed, as over TLS (`unsigned_payload`).
//!
//! ```text
//! cargo bench --all-features --bench flush_compact               # 12 minutes
//! cargo bench --all-features --bench flush_compact -- --quick    # a minute
//! ```

#[path = "../examples/flush_compact/engine/mod.rs"]
mod engine;
#[path = "../tests/support/s3.rs"]
mod s3;
mod support;

use std::time::Duration;

use clap::Parser;
use engine::contender::Contender;
use engine::findings::Findings;
use engine::lsm::Error;
use engine::rounds;
use engine::slice::{Bench, Load};
use support::{Ratio, Report, median};
// The engine's rounds look for it here.
use support::watchdog;

#[derive(Parser)]
struct Args {
    /// One round of slices of a second
    #[arg(long)]
    quick: bool,
    /// Rounds of each setting
    #[arg(long)]
    rounds: Option<usize>,
    /// Measured seconds of a slice
    #[arg(long)]
    seconds: Option<f64>,
    /// Only the setting with this latency, in ms
    #[arg(long, value_parser = ["20", "0"])]
    latency_ms: Option<String>,
    /// Leave twolane's compactions at nice 19
    #[arg(long)]
    without_idle_class: bool,
    /// Only these contenders, by their keys
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
    /// The same as `--quick`
    #[arg(long, hide = true)]
    test: bool,
}

/// With a network's latency every contender runs; without, those whose ratio
/// is asked for.
const SETTINGS: [(u64, &[Contender]); 2] = [
    (20, &Contender::ALL),
    (
        0,
        &[
            Contender::OneRuntime,
            Contender::TwoRuntimes,
            Contender::Twolane,
        ],
    ),
];

fn main() -> Result<(), Error> {
    let args = Args::parse();
    let quick = args.quick || args.test;
    let rounds = args.rounds.unwrap_or(if quick { 1 } else { 5 });
    let seconds = args.seconds.unwrap_or(if quick { 1.0 } else { 5.0 });
    if !cfg!(feature = "idle-class") {
        println!("Without the feature `idle-class`: twolane's compactions are at nice 19");
    }
    let mut report = Report::new("flush_compact");
    for (latency_ms, contenders) in SETTINGS {
        let wanted = args.latency_ms.as_ref();
        if wanted.is_some_and(|only| *only != latency_ms.to_string()) {
            continue;
        }
        let (server, access) = s3::from_environment(Duration::from_millis(latency_ms))?;
        if server.is_none() && latency_ms != 20 {
            // Its latency is its own: one setting, with all contenders.
            continue;
        }
        let about = match &server {
            Some(_) => format!("The server waits for {latency_ms} ms before each answer"),
            None => format!("The server is {}", access.endpoint),
        };
        let bench = Bench::new(access, !args.without_idle_class)?;
        let turns: Vec<_> = contenders
            .iter()
            .filter(|one| args.only.is_empty() || args.only.iter().any(|key| key == one.key()))
            .flat_map(|one| [(*one, Load::Alone), (*one, Load::Busy)])
            .collect();
        let measured = Duration::from_secs_f64(seconds);
        let findings = rounds::run(&bench, &turns, rounds, measured)?;
        println!("\n{about}:");
        findings.print();
        tell(&findings, latency_ms, &mut report);
    }
    report.write();
    Ok(())
}

fn tell(findings: &Findings, latency_ms: u64, report: &mut Report) {
    let at = match latency_ms {
        20 => String::new(),
        other => format!("_at_{other}_ms"),
    };
    for contender in Contender::ALL {
        for load in [Load::Alone, Load::Busy] {
            let flushes = findings.flushes(contender, load);
            if flushes == 0 {
                continue;
            }
            for (name, q) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
                let metric = format!("flush_{name}_{load:?}{at}").to_lowercase();
                let value = findings.all_flush_ms(contender, load, q);
                report.row(contender.key(), &metric, "ms", value, flushes);
            }
        }
        let rates = findings.compactions_per_s(contender);
        if !rates.is_empty() {
            let metric = format!("compactions{at}");
            let n = rates.len();
            report.row(contender.key(), &metric, "1/s", median(rates), n);
        }
    }
    println!("\n  Ratios, medians of the rounds' (least to most):");
    let mut ratio = |name: String, ratio: Ratio| {
        if !ratio.median.is_nan() {
            println!("  {name:<52} {ratio}");
            report.ratio(&format!("{name}{at}"), ratio.median);
        }
    };
    let ms = |contender, load, q| findings.flush_ms(contender, load, q);
    for contender in Contender::ALL {
        for (name, q) in [("p50", 0.5), ("p99", 0.99)] {
            let [busy, alone] = [Load::Busy, Load::Alone].map(|load| ms(contender, load, q));
            let name = match contender {
                Contender::Twolane => format!("flush_{name}_busy_over_alone"),
                other => format!("flush_{name}_busy_over_alone_{}", other.key()),
            };
            ratio(name, Ratio::of_rounds(busy, alone));
        }
    }
    let ours = || ms(Contender::Twolane, Load::Busy, 0.99);
    let peers = Contender::ALL.into_iter().filter(|one| one.is_peer());
    for peer in peers.clone() {
        let name = format!("flush_p99_{}_over_twolane", peer.key());
        ratio(name, Ratio::of_rounds(ms(peer, Load::Busy, 0.99), ours()));
    }
    let rates: Vec<_> = peers.map(|peer| findings.compactions_per_s(peer)).collect();
    if rates.iter().any(Vec::is_empty) {
        // Not all of them ran: there is no telling the best.
        return;
    }
    // The best of all rounds, as a peer, not each round's luckiest one.
    let best = rates.into_iter();
    let best = best.max_by(|a, b| median(a.iter().copied()).total_cmp(&median(b.iter().copied())));
    for (name, ours) in [
        ("twolane", Contender::Twolane),
        ("twolane_rayon", Contender::TwolaneRayon),
    ] {
        let name = format!("compaction_throughput_{name}_over_best_peer");
        let ours = findings.compactions_per_s(ours);
        ratio(
            name,
            Ratio::of_rounds(ours, best.clone().unwrap_or_default()),
        );
    }
}
