//! Who runs, and under what name.

use std::fmt;

use clap::ValueEnum;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Contender {
    QueuedTwolaneRayon,
    QueuedTwolaneRuntime,
    QueuedSpawnBlocking,
    QueuedAsyncTask,
    QueuedTokio,
    ParkedTwolaneRayon,
    ParkedTwolaneRuntime,
    ParkedTokio,
    ParkedGoroutines,
    ParkedThreads,
    SleepingTwolaneRayon,
    SleepingTwolaneRuntime,
    SleepingTokio,
    SleepingGoroutines,
}

use Contender::*;

/// What the million wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Queued,
    Parked,
    Sleeping,
}

impl Contender {
    pub fn case(self) -> Case {
        match self {
            QueuedTwolaneRayon | QueuedTwolaneRuntime | QueuedSpawnBlocking | QueuedAsyncTask
            | QueuedTokio => Case::Queued,
            ParkedTwolaneRayon | ParkedTwolaneRuntime | ParkedTokio | ParkedGoroutines
            | ParkedThreads => Case::Parked,
            SleepingTwolaneRayon | SleepingTwolaneRuntime | SleepingTokio | SleepingGoroutines => {
                Case::Sleeping
            }
        }
    }

    pub fn is_go(self) -> bool {
        matches!(self, ParkedGoroutines | SleepingGoroutines)
    }

    /// Whether no machine bears a million, and its figures are the slope
    /// between two smaller numbers.
    pub fn is_extrapolated(self) -> bool {
        self == ParkedThreads
    }

    /// As the switches call it.
    pub fn switch(self) -> String {
        let value = self.to_possible_value().expect("none is skipped");
        value.get_name().to_owned()
    }

    /// Its name within its case.
    pub fn who(self) -> &'static str {
        match self {
            QueuedTwolaneRayon => "twolane spawn_cpu, Rayon",
            QueuedTwolaneRuntime => "twolane spawn_cpu, Runtime",
            QueuedSpawnBlocking => "tokio spawn_blocking",
            QueuedAsyncTask => "rayon and async-task",
            QueuedTokio | ParkedTokio | SleepingTokio => "tokio tasks",
            ParkedTwolaneRayon | SleepingTwolaneRayon => "twolane spawn, Rayon",
            ParkedTwolaneRuntime | SleepingTwolaneRuntime => "twolane spawn, Runtime",
            ParkedGoroutines | SleepingGoroutines => "goroutines",
            ParkedThreads => "OS threads (extrapolated)",
        }
    }
}

impl Case {
    pub const ALL: [Self; 3] = [Self::Queued, Self::Parked, Self::Sleeping];

    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Parked => "parked",
            Self::Sleeping => "sleeping",
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}: {}", self.case().name(), self.who()))
    }
}
