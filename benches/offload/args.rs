//! What to run, and how often.

use clap::{Parser, ValueEnum};

use crate::support;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Measurement {
    Hot,
    Cold,
    Busy,
    BusyShort,
    Batch,
    Allocations,
    #[value(name = "mib")]
    MiB,
}

#[derive(Parser)]
struct Args {
    /// How many rounds, after one that warms up.
    #[arg(long)]
    rounds: Option<usize>,
    /// Only these measurements.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Measurement>,
    /// Only contenders whose name has one of these in it.
    #[arg(long, value_delimiter = ';')]
    contenders: Vec<String>,
    /// A short run whose figures mean little.
    #[arg(long)]
    quick: bool,
    /// The same.
    #[arg(long)]
    test: bool,
    /// What `cargo bench` passes.
    #[arg(long, hide = true)]
    bench: bool,
}

pub struct Plan {
    pub rounds: usize,
    pub measurements: Vec<Measurement>,
    contenders: Vec<String>,
    pub hot_trips: usize,
    pub cold_trips: usize,
    pub busy_trips: usize,
    pub large_batch: usize,
    /// Of 100 jobs.
    pub small_batches: usize,
}

impl Plan {
    pub fn from_args() -> Self {
        let args = Args::parse();
        let quick = support::is_quick();
        let of = |full: usize, in_quick: usize| if quick { in_quick } else { full };
        Self {
            rounds: args.rounds.unwrap_or(of(11, 1)).max(1),
            measurements: if args.only.is_empty() {
                Measurement::value_variants().to_vec()
            } else {
                args.only
            },
            contenders: args.contenders,
            hot_trips: of(5_000, 200),
            cold_trips: of(100, 20),
            busy_trips: of(100, 20),
            large_batch: of(50_000, 5_000),
            small_batches: of(200, 10),
        }
    }

    pub fn wants(&self, contender: &str) -> bool {
        self.contenders.is_empty() || self.contenders.iter().any(|c| contender.contains(c))
    }
}
