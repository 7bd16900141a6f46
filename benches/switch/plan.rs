//! How much of each.

use std::time::Duration;

use crate::support::is_quick;

#[derive(Clone, Copy)]
pub struct Plan {
    pub rounds: usize,
    /// Of all futures of a case together.
    pub switches: u32,
    /// Of two futures to each other, both ways together.
    pub hand_overs: u32,
    /// How many times 10,000 that wake themselves are started and joined.
    pub wake_batches: u32,
    /// Started and joined one at a time.
    pub starts: u32,
    /// How many times 1,000 are started and joined.
    pub batches: u32,
    /// Calls of `yield_if_due` in one piece. Shorter than a slice, which begins
    /// with the piece: none of them is due.
    pub calls: u32,
    /// Pieces with the call, each with one without beside it.
    pub pieces: usize,
    /// After which one turn of a contender is taken to hang.
    pub bound: Duration,
}

impl Plan {
    pub fn new() -> Self {
        let bound = Duration::from_secs(60);
        if is_quick() {
            Self {
                rounds: 3,
                switches: 20_000,
                hand_overs: 4_000,
                wake_batches: 1,
                starts: 2_000,
                batches: 3,
                calls: 200_000,
                pieces: 3,
                bound,
            }
        } else {
            Self {
                rounds: 31,
                switches: 200_000,
                hand_overs: 40_000,
                wake_batches: 4,
                starts: 20_000,
                batches: 20,
                calls: 1_000_000,
                pieces: 7,
                bound,
            }
        }
    }

    /// What goes before the clock starts: each path once, not as often.
    pub fn warm_up(&self) -> Self {
        Self {
            switches: self.switches / 10,
            hand_overs: self.hand_overs / 10,
            wake_batches: 1,
            starts: self.starts / 10,
            batches: 1,
            calls: self.calls / 10,
            pieces: 1,
            ..*self
        }
    }
}
