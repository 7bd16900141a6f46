//! Who runs, on how many threads, and under what name.

use std::fmt;

use twolane::Backend;

use crate::support::cores;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    Twolane(Backend),
    Tokio(Flavor),
    Goroutines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// Workers, and neither timers nor an I/O driver.
    MultiThread,
    /// The same with both.
    EnableAll,
    CurrentThread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    One,
    Cores,
}

/// A row of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub contender: Contender,
    pub width: Width,
}

pub const RAYON: Contender = Contender::Twolane(Backend::Rayon);
pub const RUNTIME: Contender = Contender::Twolane(Backend::Runtime);
pub const TOKIO: Contender = Contender::Tokio(Flavor::MultiThread);

impl Contender {
    const ALL: [Self; 6] = [
        RAYON,
        RUNTIME,
        TOKIO,
        Self::Tokio(Flavor::EnableAll),
        Self::Tokio(Flavor::CurrentThread),
        Self::Goroutines,
    ];
}

impl Width {
    pub const ALL: [Self; 2] = [Self::One, Self::Cores];

    pub fn threads(self) -> usize {
        match self {
            Self::One => 1,
            Self::Cores => cores(),
        }
    }
}

impl Entry {
    pub fn all() -> Vec<Self> {
        Width::ALL.into_iter().flat_map(Self::of).collect()
    }

    /// Those that can be so wide.
    pub fn of(width: Width) -> impl Iterator<Item = Self> {
        let can_be = move |contender: &Contender| {
            width == Width::One || *contender != Contender::Tokio(Flavor::CurrentThread)
        };
        let entry = move |contender| Self { contender, width };
        Contender::ALL.into_iter().filter(can_be).map(entry)
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Twolane(Backend::Rayon) => "twolane, Rayon",
            Self::Twolane(_) => "twolane, Runtime",
            Self::Tokio(Flavor::MultiThread) => "tokio, no drivers",
            Self::Tokio(Flavor::EnableAll) => "tokio, enable_all",
            Self::Tokio(Flavor::CurrentThread) => "tokio, current_thread",
            Self::Goroutines => "goroutines",
        })
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::One => "one thread",
            Self::Cores => "a thread for each core",
        })
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.contender, self.width)
    }
}
