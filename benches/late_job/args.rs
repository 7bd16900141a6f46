//! The switches, and the plan that follows from them.

use std::time::Duration;

use clap::Parser;

use crate::arrivals::{Schedule, Source};
use crate::contender::{Contender, Entry};
use crate::support::cores;

#[derive(Parser)]
#[command(about = "A small job arrives while the CPU lane has long ones queued")]
pub struct Args {
    /// One round of short jobs: half a minute in all
    #[arg(long, alias = "test")]
    quick: bool,
    /// These contenders alone
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Contender>,
    /// Who submits the small jobs of the Rust contenders
    #[arg(long, value_enum, default_value = "thread")]
    source: SourceArg,
    /// Rounds of each contender
    #[arg(long)]
    rounds: Option<usize>,
    /// How many long jobs
    #[arg(long)]
    jobs: Option<usize>,
    /// A long job is fib(k)
    #[arg(long)]
    k: Option<u32>,
    /// What `cargo bench` passes
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SourceArg {
    Thread,
    Tokio,
    Both,
}

/// What one run of each contender does.
pub struct Plan {
    pub k: u32,
    pub jobs: usize,
    pub late: Schedule,
    /// For those whose small jobs come one at a time.
    pub sparse: Schedule,
    /// The first arrival, as a part of the expected total.
    pub late_from: f64,
    /// Long futures of the part in which all have started.
    pub started_futures: usize,
    pub rounds: usize,
}

impl Plan {
    /// After which a run is taken to hang: a busy machine may be slow, and a
    /// contender may answer the small jobs last.
    pub fn bound(&self, expected: Duration) -> Duration {
        6 * expected + 4 * self.sparse.span().max(self.late.span()) + Duration::from_secs(60)
    }
}

impl Args {
    pub fn plan(&self) -> Plan {
        // Chosen, not calibrated: with these, a run of one machine is
        // comparable to its next, whatever its clock does meanwhile. A long job
        // is 35 to 75 ms (fib(35)) on the machine that this was written on, and
        // 300 for each core take 10 to 20 s.
        let (k, jobs_per_core, rounds) = if self.quick {
            (30, 150, 1)
        } else {
            (35, 300, 5)
        };
        let every = |ms, count| Schedule::new(count, Duration::from_millis(ms));
        let (late, sparse) = if self.quick {
            (every(5, 40), every(25, 10))
        } else {
            (every(10, 200), every(25, 200))
        };
        Plan {
            k: self.k.unwrap_or(k),
            jobs: self.jobs.unwrap_or(jobs_per_core * cores()).max(1),
            late,
            sparse,
            late_from: 0.25,
            started_futures: 200,
            rounds: self.rounds.unwrap_or(rounds).max(1),
        }
    }

    pub fn entries(&self) -> Vec<Entry> {
        let sources = match self.source {
            SourceArg::Thread => &[Source::Thread][..],
            SourceArg::Tokio => &[Source::Tokio],
            SourceArg::Both => &[Source::Thread, Source::Tokio],
        };
        let asked = |c: &Contender| self.only.is_empty() || self.only.contains(c);
        let contenders = Contender::ALL.into_iter().filter(asked);
        contenders
            .flat_map(|contender| {
                // Go's source is a goroutine, whatever Rust's is.
                let sources = if contender.is_go() {
                    &sources[..1]
                } else {
                    sources
                };
                let entry = move |source: &Source| Entry {
                    contender,
                    source: *source,
                };
                sources.iter().map(entry)
            })
            .collect()
    }
}
