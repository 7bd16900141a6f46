//! The switches, and the plan that follows from them.

use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::contender::Contender;

/// How long one sleeps.
pub const SLEEP: Duration = Duration::from_secs(1);

#[derive(Parser)]
#[command(about = "What a million queued closures, or waiting futures, cost")]
pub struct Args {
    /// One round of 50,000: seconds in all
    #[arg(long, alias = "test")]
    quick: bool,
    /// These contenders alone
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Contender>,
    /// Rounds of each contender
    #[arg(long)]
    rounds: Option<usize>,
    /// How many of each
    #[arg(long)]
    count: Option<usize>,
    /// How many OS threads at most; the slope is that from half of them
    #[arg(long)]
    threads: Option<usize>,
    /// Be the process of this one, and print its figures as JSON
    #[arg(long, value_enum, hide = true)]
    pub contender: Option<Contender>,
    /// What `cargo bench` passes
    #[arg(long, hide = true)]
    bench: bool,
}

pub struct Plan {
    pub contenders: Vec<Contender>,
    pub rounds: usize,
    pub count: usize,
    /// The two numbers of OS threads between which the slope is taken.
    pub threads: [usize; 2],
}

impl Args {
    pub fn plan(&self) -> Plan {
        let (rounds, count, threads) = if self.quick {
            (1, 50_000, 4_000)
        } else {
            (5, 1_000_000, 10_000)
        };
        let threads = self.threads.unwrap_or(threads).max(2);
        let asked = |c: &&Contender| self.only.is_empty() || self.only.contains(c);
        Plan {
            contenders: Contender::value_variants()
                .iter()
                .filter(asked)
                .copied()
                .collect(),
            rounds: self.rounds.unwrap_or(rounds).max(1),
            count: self.count.unwrap_or(count).max(1),
            threads: [threads / 2, threads],
        }
    }
}

/// After which a process of `count` is taken to hang, and ends itself. Generous:
/// a busy machine may be slow.
pub fn bound(count: usize) -> Duration {
    Duration::from_secs(30) + count as u32 * Duration::from_micros(100)
}
