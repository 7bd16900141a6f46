//! Who runs, and under what name.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::Handle;
use twolane::Backend;

use crate::arrivals::Source;
use crate::{peers, twolane_side};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Contender {
    Goroutines,
    SpawnBlocking,
    Rayon,
    SecondRuntime,
    TwolaneNormal,
    TwolaneHigh,
    TwolaneFuturesRayon,
    TwolaneFuturesRuntime,
    StartedFuturesRayon,
    StartedFuturesRuntime,
}

/// Which code runs a contender.
pub enum Side {
    Go,
    Queue(fn(&Handle) -> Contestant),
    StartedFutures(Backend),
}

/// Ready when the one who awaits the job has its result: the time at which the
/// job ended.
pub type Ending = Pin<Box<dyn Future<Output = Instant> + Send>>;

/// A contender of Rust's, open for jobs. Boxed alike for all.
pub struct Contestant {
    /// Submits a long job, `fib(k)`.
    pub long: Box<dyn Fn(u32) -> Ending>,
    /// Submits a small one.
    pub late: Arc<dyn Fn() -> Ending + Send + Sync>,
    /// Waits until its threads are gone; after the two above were dropped.
    pub close: Box<dyn FnOnce()>,
}

impl Contender {
    pub const ALL: [Self; 10] = [
        Self::Goroutines,
        Self::SpawnBlocking,
        Self::Rayon,
        Self::SecondRuntime,
        Self::TwolaneNormal,
        Self::TwolaneHigh,
        Self::TwolaneFuturesRayon,
        Self::TwolaneFuturesRuntime,
        Self::StartedFuturesRayon,
        Self::StartedFuturesRuntime,
    ];

    pub fn side(self) -> Side {
        match self {
            Self::Goroutines => Side::Go,
            Self::SpawnBlocking => Side::Queue(peers::spawn_blocking),
            Self::Rayon => Side::Queue(peers::rayon_pool),
            Self::SecondRuntime => Side::Queue(peers::second_runtime),
            Self::TwolaneNormal => Side::Queue(twolane_side::normal),
            Self::TwolaneHigh => Side::Queue(twolane_side::high),
            Self::TwolaneFuturesRayon => {
                Side::Queue(|io| twolane_side::futures(io, Backend::Rayon))
            }
            Self::TwolaneFuturesRuntime => {
                Side::Queue(|io| twolane_side::futures(io, Backend::Runtime))
            }
            Self::StartedFuturesRayon => Side::StartedFutures(Backend::Rayon),
            Self::StartedFuturesRuntime => Side::StartedFutures(Backend::Runtime),
        }
    }

    /// Whether it is one of those with a queue of long jobs.
    pub fn has_queue(self) -> bool {
        !matches!(self.side(), Side::StartedFutures(_))
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Goroutines => "goroutines",
            Self::SpawnBlocking => "spawn_blocking",
            Self::Rayon => "rayon",
            Self::SecondRuntime => "second runtime",
            Self::TwolaneNormal => "twolane, all Normal",
            Self::TwolaneHigh => "twolane, small ones High",
            Self::TwolaneFuturesRayon => "twolane futures, Rayon",
            Self::TwolaneFuturesRuntime => "twolane futures, Runtime",
            Self::StartedFuturesRayon => "200 started futures, Rayon",
            Self::StartedFuturesRuntime => "200 started futures, Runtime",
        })
    }
}

/// A row of the tables: a contender, and the source of its small jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub contender: Contender,
    pub source: Source,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.contender.to_string();
        f.pad(&match (self.contender, self.source) {
            (Contender::Goroutines, _) | (_, Source::Thread) => name,
            (_, Source::Tokio) => format!("{name} (Tokio's timer)"),
        })
    }
}
