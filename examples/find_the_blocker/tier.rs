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

    /// Whether a stall of this route has to be reported. Without a name, what computes shows
    /// only where it keeps all workers; and a lock, as a worker that is parked waits for
    /// one too, only where a single worker should have polled a probe. In a cgroup that is
    /// throttled the watch itself is stopped for half of the time, and may miss those.
    pub fn tells(self, planted: &str, workers: Option<usize>, machine: Machine) -> bool {
        match planted {
            _ if self != Self::Nothing => true,
            _ if machine == Machine::Throttled => false,
            "computes" => workers != Some(2),
            "blocks in futex" => workers == Some(1),
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
