//! [`Advice`]: from the figures of a call site to a sentence.

use std::fmt;
use std::time::Duration;

use crate::priority::Priority;

/// From here on a job is worth its own offload: docs/cost.md, "The rule of thumb".
const WORTH_IT: Duration = Duration::from_micros(100);
/// So many wait for it, or none should: what a person notices. A choice, not a measurement.
const LONG: Duration = Duration::from_millis(100);
/// Fewer do not make a p99, nor much of a median.
const ENOUGH: u64 = 32;

/// What the figures of a [`CallSite`](super::CallSite) say about offloading there.
///
/// The limits are those of the guide (`twolane::guide::cost`). `Display` writes a
/// sentence.
///
/// # Examples
///
/// ```
/// assert!(twolane::Advice::Batch.to_string().contains("on_cpu"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Advice {
    /// Fewer than 32 runs were timed.
    TooFewSamples,
    /// Even the p99 of the run time is below 100 µs: the way to the lane and back costs as
    /// much as the work, or more.
    BatchOrInline,
    /// The mean of the run time is below 100 µs, and the p99 is not: one by one costs as
    /// much, but some runs would stop an I/O worker.
    Batch,
    /// The mean of the run time is 100 µs or more.
    Fine,
    /// Half of the runs take 100 ms or more, and the priority is not `Low`.
    LongEnoughForLow,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooFewSamples => "too few samples for advice",
            Self::BatchOrInline => {
                "too small to offload one by one: batch it (`on_cpu`, or slices of about 1 ms), \
                 or do it in place"
            }
            Self::Batch => {
                "mostly too small to offload one by one, and too long at times to do it in \
                 place: batch it (`on_cpu`, or slices of about 1 ms)"
            }
            Self::Fine => "fine",
            Self::LongEnoughForLow => "long enough for `Priority::Low`, unless a user waits for it",
        })
    }
}

/// Of the run time.
pub(super) struct Figures {
    pub(super) samples: u64,
    pub(super) mean: Duration,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    pub(super) priority: Priority,
}

impl Figures {
    pub(super) fn advice(&self) -> Advice {
        if self.samples < ENOUGH {
            Advice::TooFewSamples
        } else if self.mean < WORTH_IT && self.p99 < WORTH_IT {
            Advice::BatchOrInline
        } else if self.mean < WORTH_IT {
            Advice::Batch
        } else if self.p50 >= LONG && self.priority != Priority::Low {
            Advice::LongEnoughForLow
        } else {
            Advice::Fine
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(samples: u64, micros: [u64; 3], priority: Priority) -> Advice {
        let [mean, p50, p99] = micros.map(Duration::from_micros);
        let figures = Figures {
            samples,
            mean,
            p50,
            p99,
            priority,
        };
        figures.advice()
    }

    #[test]
    fn of_jobs_of_one_length() {
        let of = |micros| advice(32, [micros; 3], Priority::Normal);
        assert_eq!(of(1), Advice::BatchOrInline);
        assert_eq!(of(99), Advice::BatchOrInline);
        assert_eq!(of(100), Advice::Fine);
        assert_eq!(of(1_000), Advice::Fine);
        assert_eq!(of(99_999), Advice::Fine);
        assert_eq!(of(500_000), Advice::LongEnoughForLow);
        assert_eq!(
            advice(31, [500_000; 3], Priority::High),
            Advice::TooFewSamples
        );
    }

    #[test]
    fn of_others() {
        let of = |micros| advice(1_000, micros, Priority::Normal);
        // Rare long ones, which must not run in place.
        assert_eq!(of([30, 5, 2_000]), Advice::Batch);
        // Rare long ones that are most of the time: batches would gain nothing.
        assert_eq!(of([1_000, 5, 50_000]), Advice::Fine);
        assert_eq!(of([40_000, 5, 500_000]), Advice::Fine);
        // What is at `Low` already.
        assert_eq!(advice(1_000, [500_000; 3], Priority::Low), Advice::Fine);
        assert_eq!(
            advice(1_000, [500_000; 3], Priority::High),
            Advice::LongEnoughForLow
        );
    }
}
