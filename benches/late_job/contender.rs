//! Who runs, and under what name.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use tokio::runtime::Handle;
use twolane::Backend;

use crate::args::Plan;
use crate::arrivals::{Schedule, Source};
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
    GoroutinesSparse,
    TwolaneHighSparse,
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
    pub const ALL: [Self; 12] = [
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
        Self::GoroutinesSparse,
        Self::TwolaneHighSparse,
    ];

    pub fn side(self) -> Side {
        match self {
            Self::Goroutines | Self::GoroutinesSparse => Side::Go,
            Self::SpawnBlocking => Side::Queue(peers::spawn_blocking),
            Self::Rayon => Side::Queue(peers::rayon_pool),
            Self::SecondRuntime => Side::Queue(peers::second_runtime),
            Self::TwolaneNormal => Side::Queue(twolane_side::normal),
            Self::TwolaneHigh | Self::TwolaneHighSparse => Side::Queue(twolane_side::high),
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

    pub fn is_go(self) -> bool {
        matches!(self.side(), Side::Go)
    }

    /// When its small jobs arrive.
    pub fn late(self, plan: &Plan) -> Schedule {
        match self {
            Self::GoroutinesSparse | Self::TwolaneHighSparse => plan.sparse,
            _ => plan.late,
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
            Self::GoroutinesSparse => "goroutines, sparse",
            Self::TwolaneHighSparse => "twolane, small ones High, sparse",
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
        f.pad(&match self.source {
            _ if self.contender.is_go() => name,
            Source::Thread => name,
            Source::Tokio => format!("{name} (Tokio's timer)"),
        })
    }
}
