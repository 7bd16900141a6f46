//! The pieces of work, and the stream that they come from.

use std::time::{Duration, Instant};

use tokio::task::coop::consume_budget;

use twolane_benches::tail::work::Work;

/// How much work the pieces of one batch make, in microseconds.
const BATCH_US: u64 = 1_000;

/// A millisecond of work, of which all sizes are multiples: calibrated one by
/// one, they would not compare.
#[derive(Clone, Copy)]
pub struct Unit(Work);

impl Unit {
    pub fn calibrated() -> Self {
        Self(Work::calibrated(Duration::from_millis(1)))
    }
}

/// Pieces of one size.
#[derive(Clone, Copy)]
pub struct Pieces {
    work: Work,
    pub per_batch: usize,
}

impl Pieces {
    pub fn new(unit: Unit, us: u64) -> Self {
        let steps = unit.0.steps * us / 1_000;
        Self {
            work: Work { steps },
            per_batch: usize::try_from(BATCH_US / us).unwrap().max(1),
        }
    }

    /// Returns what tells this piece from the others, so that none can be lost
    /// or done twice unnoticed.
    pub fn compute(self, piece: u64) -> u64 {
        self.work.run();
        piece
    }
}

/// A stream of pieces that always has a next one, until the time is over.
pub struct Stream {
    next: u64,
    until: Instant,
}

impl Stream {
    pub fn until(until: Instant) -> Self {
        Self { next: 0, until }
    }

    /// Ready at once, but for the cooperative budget.
    pub async fn next(&mut self) -> Option<u64> {
        consume_budget().await;
        self.next_without_runtime()
    }

    pub fn next_without_runtime(&mut self) -> Option<u64> {
        if Instant::now() >= self.until {
            return None;
        }
        let piece = self.next;
        self.next += 1;
        Some(piece)
    }

    /// How many there were.
    ///
    /// # Panics
    /// If `sum` is not that of all of their results.
    pub fn checked(self, sum: u64) -> u64 {
        let all: u64 = (0..self.next).sum();
        assert_eq!(sum, all, "a piece was lost, or done twice");
        self.next
    }
}
