//! A small histogram of durations: a call site has two of them, and a program may have
//! many sites. (Those of `timings.rs` are eight times as fine, and as large.)

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The first bucket takes all that is below 160 ns, the last one all from 2 hours on.
const POWERS: std::ops::Range<u32> = 7..43;
const OF_A_POWER: u32 = 4;
const BUCKETS: usize = ((POWERS.end - POWERS.start) * OF_A_POWER) as usize;

pub(super) struct Buckets([AtomicU64; BUCKETS]);

impl Buckets {
    pub(super) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; BUCKETS])
    }

    // Relaxed, here and below: the counts order no other memory.
    pub(super) fn add(&self, nanos: u64, weight: u64) {
        self.0[bucket_of(nanos)].fetch_add(weight, Relaxed);
    }

    pub(super) fn read(&self) -> Counts {
        Counts(self.0.iter().map(|count| count.load(Relaxed)).collect())
    }
}

fn bucket_of(nanos: u64) -> usize {
    let nanos = nanos.clamp(1 << POWERS.start, (1 << POWERS.end) - 1);
    let power = nanos.ilog2();
    let quarter = (nanos >> (power - 2)) & 3;
    ((power - POWERS.start) * OF_A_POWER) as usize + quarter as usize
}

/// The longest duration of a bucket.
fn end_of(bucket: usize) -> Duration {
    let power = POWERS.start + bucket as u32 / OF_A_POWER;
    let quarter = bucket as u64 % u64::from(OF_A_POWER);
    Duration::from_nanos(((5 + quarter) << (power - 2)) - 1)
}

pub(super) struct Counts(Vec<u64>);

impl Counts {
    pub(super) fn sum(&self) -> u64 {
        self.0.iter().sum()
    }

    /// At most a quarter too long.
    pub(super) fn quantile(&self, percent: u64) -> Option<Duration> {
        let rank = (self.sum() * percent).div_ceil(100).max(1);
        let mut passed = 0;
        let is_it = |count: &u64| {
            passed += count;
            passed >= rank
        };
        self.0.iter().position(is_it).map(end_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_at_most_a_quarter_of_its_value() {
        let mut last = 0;
        for nanos in (0..43).flat_map(|power| (0..100).map(move |n| (1 << power) * (100 + n) / 100))
        {
            let (bucket, end) = (bucket_of(nanos), end_of(bucket_of(nanos)).as_nanos());
            assert!(bucket >= last, "{nanos} ns");
            last = bucket;
            let at_most = u128::from(nanos.max(128)) * 5 / 4;
            assert!(u128::from(nanos) <= end && end <= at_most, "{nanos}: {end}");
        }
        assert_eq!(last, BUCKETS - 1);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_go_by_weight() {
        let buckets = Buckets::new();
        assert_eq!(buckets.read().quantile(50), None);
        buckets.add(1_000, 98);
        buckets.add(1_000_000, 1);
        buckets.add(2_000_000, 1);
        let counts = buckets.read();
        assert_eq!(counts.sum(), 100);
        assert_eq!(counts.quantile(50), Some(Duration::from_nanos(1_023)));
        assert_eq!(counts.quantile(98), Some(Duration::from_nanos(1_023)));
        assert_eq!(counts.quantile(99), Some(end_of(bucket_of(1_000_000))));
        assert_eq!(counts.quantile(100), Some(end_of(bucket_of(2_000_000))));
    }
}
