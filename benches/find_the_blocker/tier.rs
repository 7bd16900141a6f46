//! How much of the service the watch can see.

use twolane::watch::{Cause, Stall};

use crate::machine::Machine;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// `WatchLayer` around the routes.
    Layer,
    /// `SpanWatch`, and a span in each handler.
    Span,
    /// Threads alone.
    Nothing,
}

impl Tier {
    /// The spans last: once the process has a subscriber, it keeps it.
    pub const ALL: [Self; 3] = [Self::Layer, Self::Nothing, Self::Span];

    pub fn name(self) -> &'static str {
        match self {
            Self::Layer => "WatchLayer",
            Self::Span => "SpanWatch",
            Self::Nothing => "nothing",
        }
    }

    /// Whether a stall of this route has to be reported. Without a name, that is what blocks in a
    /// call: not in the one in which a parked worker waits, too, and not on a `current_thread`
    /// runtime, whose thread may have left `block_on`. In a cgroup that is throttled the watch
    /// itself is stopped for half of the time, and may miss those.
    pub fn tells(self, planted: &str, workers: Option<usize>, machine: Machine) -> bool {
        match planted {
            _ if self != Self::Nothing => true,
            _ if machine == Machine::Throttled || workers.is_none() => false,
            "computes" | "blocks in futex" => false,
            _ => true,
        }
    }

    /// Whether the stall names this route.
    pub fn names(self, stall: &Stall, route: &str) -> bool {
        let culprit = stall.culprit().unwrap_or_default();
        match self {
            Self::Layer => culprit == route,
            // `/parse (routes.rs:97)`.
            Self::Span => culprit.split(' ').next() == Some(route),
            Self::Nothing => false,
        }
    }
}

/// Whether the stall says rightly that it computes or blocks, and where.
pub fn has_cause(stall: &Stall, planted: &str) -> bool {
    match stall.cause() {
        // The platform does not tell.
        Cause::Unknown => true,
        cause => cause.to_string() == planted,
    }
}
