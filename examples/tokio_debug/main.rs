//! The pooled-client stall, shown, explained and cured in one program.
//!
//! # The question
//!
//! Two Tokio runtimes, `io` and `cpu`, two workers each, share one pooled `reqwest::Client`. A
//! server answers each request after 50 ms. Both sides submit ten requests, 10 ms apart; after its
//! response a `cpu` task keeps its thread for 200 ms. Why do some of the `io` side's requests take
//! about a second, though its runtime has nothing else to do? (Published as *tokio-debug* by the
//! authors of CeresDB in 2023.)
//!
//! # What it shows
//!
//! Seven contenders, each in two variants (the CPU job sleeps on its thread, as published; the CPU
//! job computes), their rounds in turn:
//!
//! - (a) the io side alone,
//! - (b) two runtimes that share one client, as published,
//! - (c) the same with pooling switched off,
//! - (d) two runtimes with a client each,
//! - (e) one client whose connects are moved to the `io` runtime by a `connector_layer`,
//! - (f) twolane, the CPU jobs' requests by `send_io()`,
//! - (g) twolane, the CPU jobs' requests by plain `send()`: the safety net of the rayon backend.
//!
//! For each request of the io side it says how long it took, where the time went, which lane opened
//! its connection, whose reactor the socket is registered with and which lane drove it: observed
//! each time, never assumed (`connector.rs`, `reactor.rs` and `wakes.rs` say how). Three more cases
//! follow in which (g) is not enough (`extra.rs`).
//!
//! # What it does not measure
//!
//! Throughput; the cost of an undisturbed request (the probes cost something, the same for all);
//! TLS, DNS and real networks. The CPU side's own requests, which have reasons of their own to be
//! late: their tasks wait behind busy threads. Each round starts with an empty pool, as a process
//! that has just started: a pool that is warm stalls too, in other proportions.
//!
//! # How to run it
//!
//! ```text
//! cargo run --release --example tokio_debug              # about five minutes
//! cargo run --release --example tokio_debug -- --quick   # half a minute
//! ```
//!
//! It writes `target/twolane/tokio_debug.svg` (a timeline) and `tokio_debug.json`, and fails if a
//! request of (f) stalled that noise doesn't explain.

use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

use tokio_debug::connector::BoxError;
use tokio_debug::contender::Contender;
use tokio_debug::extra::Case;
use tokio_debug::findings::Findings;
use tokio_debug::gate::Busy;
use tokio_debug::server::Server;
use tokio_debug::verdict::Verdict;
use tokio_debug::{extra, found, json, round, tables, timeline};

#[derive(Parser)]
#[command(about = "The pooled-client stall, shown, explained and cured")]
struct Args {
    /// Few rounds: half a minute in all
    #[arg(long)]
    quick: bool,
    /// Rounds of each contender in each variant; (a) and (f) run five times as many, in quick mode
    /// as many
    #[arg(long)]
    rounds: Option<usize>,
}

fn main() -> Result<ExitCode, BoxError> {
    let args = Args::parse();
    let rounds = args
        .rounds
        .unwrap_or(if args.quick { 2 } else { 20 })
        .max(1);
    let tries = if args.quick { 3 } else { 20 };
    let schedule = schedule(rounds, args.quick);
    let extras = tries * Case::ALL.len() * extra::CONTENDERS.len();

    let server = Server::start()?;
    // Hidden where stderr is no terminal.
    let progress = ProgressBar::new((schedule.len() + extras) as u64).with_style(
        ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {wide_msg}")?,
    );
    let mut findings = Findings::default();
    for (contender, busy) in schedule {
        let nth = findings.rounds(contender, busy).count() + 1;
        // Some for the picture, which is to show what the CPU side goes on doing.
        let whole = contender == Contender::Twolane && busy == Busy::Sleep && nth <= 3;
        progress.set_message(format!(
            "{}, {}, round {nth}",
            contender.title(),
            busy.key()
        ));
        findings
            .rounds
            .push(round::run(contender, busy, whole, &server)?);
        progress.inc(1);
    }
    for nth in 0..tries {
        for case in Case::ALL {
            for contender in extra::CONTENDERS {
                progress.set_message(format!("{}, {}", contender.title(), case.key()));
                let sample = case.run(contender, nth, &server)?;
                findings.extras.push((case, contender, sample));
                progress.inc(1);
            }
        }
    }
    progress.finish_and_clear();

    tables::print(&findings);
    write_files(&findings)?;
    let verdict = Verdict::of(&findings);
    println!("\n{verdict}");
    Ok(if verdict.failed() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Every contender takes its turn in every round. The headline compares the tails of (a) and (f),
/// which takes more samples: between the turns of the others these two have theirs again.
fn schedule(rounds: usize, quick: bool) -> Vec<(Contender, Busy)> {
    let others = [
        Contender::Shared,
        Contender::Unpooled,
        Contender::TwoClients,
        Contender::Connector,
        Contender::SafetyNet,
    ];
    let mut schedule = Vec::new();
    for round in 0..rounds {
        for busy in Busy::ALL {
            for (nth, other) in others.into_iter().enumerate() {
                let mut turn = vec![Contender::Alone, Contender::Twolane];
                if (round + nth) % 2 == 1 {
                    turn.reverse();
                }
                if quick && nth > 0 {
                    turn.clear();
                }
                turn.push(other);
                schedule.extend(turn.into_iter().map(|contender| (contender, busy)));
            }
        }
    }
    schedule
}

fn write_files(findings: &Findings) -> Result<(), BoxError> {
    let folder = found::folder()?;
    let numbers = folder.join("tokio_debug.json");
    json::write(findings, &numbers)?;
    println!("\nThe numbers: {}", numbers.display());
    let picture = folder.join("tokio_debug.svg");
    if timeline::draw(findings, &picture).map_err(|error| error.to_string())? {
        println!("A timeline:  {}", picture.display());
    }
    Ok(())
}
