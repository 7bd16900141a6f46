//! Flush and compaction of an LSM engine on a real S3 server.
//!
//! # The question
//!
//! A time-series engine writes to object storage: small *flushes* of what was
//! just inserted, which a client waits for, and large *compactions* in the
//! background. When compactions pile up, the latency of flushes jumps, though
//! the two run in different thread pools. Where does it come from, and what
//! keeps it down? (From the authors of CeresDB, 2023.)
//!
//! # What it shows
//!
//! Bursts of 4 flushes each 100 ms (sort, encode, put 256 KiB: 6 ms of CPU),
//! alone and beside 4 compactions (8 range gets of 512 KiB, decode, merge,
//! encode: 200 ms of CPU, multipart put of 4 MiB), by six contenders:
//!
//! - one Tokio runtime for all,
//! - one runtime, with the CPU parts in `spawn_blocking`,
//! - two runtimes, one for flushes and one for compactions, that share a store,
//! - the same with object_store's own `SpawnedReqwestConnector`: all requests
//!   on the flushes' runtime,
//! - twolane, on each backend: one CPU lane, flushes at `High` and compactions
//!   at `Low`, and the requests on the I/O lane by `IoConnector`. (Not with the
//!   default weights: High at nice 1, Low in the kernel's idle class.)
//!
//! All that was written is read back and compared: not a row lost or doubled.
//!
//! # What it does not measure
//!
//! A network: the S3 server (`s3s-fs`) listens on loopback and waits for 20 ms
//! before each answer. It is in this process, on threads of its own that
//! compete for the same cores. An engine's index, write-ahead log or cache.
//!
//! # How to run it
//!
//! ```text
//! cargo run --release -p twolane-s3 --example flush_compact              # three minutes
//! cargo run --release -p twolane-s3 --example flush_compact -- --quick   # half a minute
//! ```
//!
//! `TWOLANE_S3_ENDPOINT`, `TWOLANE_S3_BUCKET` and the usual `AWS_*` variables
//! point it at another server. It writes `target/twolane/flush_compact.svg`, a
//! timeline of a second of it.

#[path = "../../../examples/support/folder.rs"]
mod found;
mod picture;
#[path = "../../../examples/support/timeline.rs"]
mod timeline;
#[path = "../../../examples/support/words.rs"]
mod words;

use std::time::Duration;

use clap::Parser;

use twolane_s3::engine::contender::Contender;
use twolane_s3::engine::findings::{Findings, quantile};
use twolane_s3::engine::lsm::Error;
use twolane_s3::engine::rounds;
use twolane_s3::engine::slice::{Bench, Load};
use twolane_s3::server;

#[derive(Parser)]
#[command(about = "Flush and compaction of an LSM engine on a real S3 server")]
struct Args {
    /// One round of short slices: half a minute in all
    #[arg(long)]
    quick: bool,
    /// How long the server waits before it looks at a request
    #[arg(long, default_value_t = 20)]
    latency_ms: u64,
    /// Rounds: a slice alone and one beside compactions for each contender
    #[arg(long)]
    rounds: Option<usize>,
    /// Measured seconds of a slice
    #[arg(long)]
    seconds: Option<f64>,
}

fn main() -> Result<(), Error> {
    let args = Args::parse();
    let rounds = args.rounds.unwrap_or(if args.quick { 1 } else { 2 });
    let seconds = if args.quick { 1.0 } else { 5.0 };
    let measured = Duration::from_secs_f64(args.seconds.unwrap_or(seconds));
    let (own_server, access) = server::from_environment(Duration::from_millis(args.latency_ms))?;
    match &own_server {
        Some(_) => println!(
            "The S3 server: s3s-fs, in this process, with {} ms of latency a request",
            args.latency_ms
        ),
        None => println!("The S3 server: {}", access.endpoint),
    }
    let bench = Bench::new(access, true)?;
    let turns = Contender::ALL.map(|one| [(one, Load::Alone), (one, Load::Busy)]);
    let findings = rounds::run(&bench, turns.as_flattened(), rounds.max(1), measured)?;
    findings.print();
    println!(
        "\nRead back and compared: {} million rows, none lost, none doubled.",
        findings.rows_verified() / 1_000_000
    );
    look_for(&findings);
    picture::draw(&findings)
}

fn look_for(findings: &Findings) {
    let p99 = |contender, load| findings.all_flush_ms(contender, load, 0.99);
    let ours = p99(Contender::Twolane, Load::Busy);
    println!(
        "\nLook for: the p99 of flushes beside compactions. twolane's (Backend::Runtime) is {:.2} times what it is \
         alone;\nthat of one runtime is {:.1} times twolane's, that of two runtimes {:.1} times. \
         Compactions: {:.2}\nof the best other contender's.",
        ours / p99(Contender::Twolane, Load::Alone),
        p99(Contender::OneRuntime, Load::Busy) / ours,
        p99(Contender::TwoRuntimes, Load::Busy) / ours,
        {
            let of = |contender| quantile(findings.compactions_per_s(contender), 0.5);
            let others = Contender::ALL.into_iter().filter(|one| one.is_peer());
            of(Contender::Twolane) / others.map(of).fold(f64::NAN, f64::max)
        },
    );
}
