//! What is measured.

use std::collections::BTreeMap;

/// A figure of one turn, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Case {
    SwitchAlone,
    SwitchTwo,
    Switch100,
    Start,
    Start1000,
    SpawnCpu,
    SelfWake,
    PingPong,
    WakeBatch,
    YieldIfDueRaw,
    EmptyLoop,
    YieldIfDue,
}

/// Of one turn of a contender, which need not have them all.
pub type Figures = BTreeMap<Case, f64>;

/// How many are started before the first is joined.
pub const BATCH: u32 = 1_000;
/// How many that wake themselves are started before the first is joined.
pub const WAKE_BATCH: u32 = 10_000;
/// How often each of them does.
pub const WAKES: u32 = 3;

impl Case {
    pub const ALL: [Self; 12] = [
        Self::SwitchAlone,
        Self::SwitchTwo,
        Self::Switch100,
        Self::Start,
        Self::Start1000,
        Self::SpawnCpu,
        Self::SelfWake,
        Self::PingPong,
        Self::WakeBatch,
        Self::YieldIfDueRaw,
        Self::EmptyLoop,
        Self::YieldIfDue,
    ];

    /// How many futures switch.
    pub const SWITCHES: [(Self, u32); 3] = [
        (Self::SwitchAlone, 1),
        (Self::SwitchTwo, 2),
        (Self::Switch100, 100),
    ];

    /// As the report calls it, and the program in Go.
    pub fn key(self) -> &'static str {
        match self {
            Self::SwitchAlone => "switch_alone",
            Self::SwitchTwo => "switch_two",
            Self::Switch100 => "switch_100",
            Self::Start => "start",
            Self::Start1000 => "start_1000",
            Self::SpawnCpu => "spawn_cpu",
            Self::SelfWake => "self_wake",
            Self::PingPong => "ping_pong",
            Self::WakeBatch => "wake_batch",
            Self::YieldIfDueRaw => "yield_if_due_raw",
            Self::EmptyLoop => "empty_loop",
            Self::YieldIfDue => "yield_if_due",
        }
    }

    /// The head of its column.
    pub fn title(self) -> &'static str {
        match self {
            Self::SwitchAlone => "one alone",
            Self::SwitchTwo => "two",
            Self::Switch100 => "100",
            Self::Start => "one at a time",
            Self::Start1000 => "1,000, then joined",
            Self::SpawnCpu => "spawn_cpu",
            Self::SelfWake => "one wakes itself",
            Self::PingPong => "two, by turns",
            Self::WakeBatch => "10,000, 3 times each",
            Self::YieldIfDueRaw => "raw",
            Self::EmptyLoop => "empty loop",
            Self::YieldIfDue => "net",
        }
    }
}
