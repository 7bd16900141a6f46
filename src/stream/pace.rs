//! [`Pace`]: how long an input takes, as the workers have measured it lately.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Inputs whose outputs go into a batch together take this, and are as many at most.
const TIME_AT_ONCE: Duration = Duration::from_micros(1);
const MOST_AT_ONCE: usize = 16;
/// In nanoseconds. Inputs that together take this longer than twice what they took lately have a
/// long one among them, or their thread was preempted. (Twice: a chunk takes some milliseconds,
/// which vary.)
const LONG: u64 = 1_000_000;
/// So many inputs after it go one by one.
const ONE_BY_ONE: usize = 4_096;

#[derive(Default)]
pub(super) struct Pace {
    /// In nanoseconds, for each input; 0 if none was measured.
    cost: AtomicU64,
    /// How many inputs go one by one from now on, since one of them was long.
    one_by_one: AtomicUsize,
}

impl Pace {
    /// How long an input takes.
    pub(super) fn cost(&self) -> Duration {
        Duration::from_nanos(self.cost.load(Relaxed))
    }

    /// How many inputs take that time: one at least.
    pub(super) fn inputs_in(&self, time: Duration, most: usize) -> usize {
        let inputs = match self.cost.load(Relaxed) {
            0 => 1,
            cost => nanos(time) / cost,
        };
        usize::try_from(inputs).unwrap_or(most).clamp(1, most)
    }

    /// The outputs of so many inputs of a chunk go into a batch together: a lock for each
    /// input would cost more than a tiny one does. They wait for a long one among them, so
    /// where one was long lately, each goes by itself.
    pub(super) fn inputs_at_once(&self, of_chunk: usize) -> usize {
        if self.one_by_one.load(Relaxed) == 0 {
            return self.inputs_in(TIME_AT_ONCE, MOST_AT_ONCE);
        }
        let less = |left: usize| Some(left.saturating_sub(of_chunk));
        let _ = self.one_by_one.fetch_update(Relaxed, Relaxed, less);
        1
    }

    /// A worker has measured the time of so many inputs.
    ///
    /// The estimate falls fast and rises slowly: a worker that the kernel has preempted
    /// measures too long a time.
    pub(super) fn measured(&self, took: Duration, inputs: usize) {
        let (took, inputs) = (nanos(took), inputs as u64);
        let before = self.cost.load(Relaxed);
        let expected = before.saturating_mul(inputs);
        if took.saturating_sub(expected.saturating_mul(2)) >= LONG {
            self.one_by_one.store(ONE_BY_ONE, Relaxed);
        }
        let now = (took / inputs.max(1)).max(1);
        let cost = match before {
            0 => now,
            before if now < before => now + (before - now) / 2,
            before => before.saturating_add((now - before).min(before) / 2),
        };
        self.cost.store(cost, Relaxed);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A whole chunk of a long batch takes longer than a long input does.
    #[test]
    fn only_a_long_input_makes_those_after_it_go_one_by_one() {
        let pace = Pace::default();
        pace.measured(Duration::from_nanos(100), 1);
        // A chunk may take twice its time, since others have the core, too.
        pace.measured(Duration::from_millis(10), 50_000);
        assert_ne!(pace.inputs_at_once(16), 1);
        pace.measured(Duration::from_millis(10), 16);
        assert_eq!(pace.inputs_at_once(ONE_BY_ONE), 1);
        assert_ne!(pace.inputs_at_once(16), 1, "enough have gone one by one");
    }
}
