//! Shards, for what many threads write at the same time: each thread writes to its own
//! shard as a rule, so it seldom waits for a cache line of another thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

thread_local! {
    static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Returns a number that selects a shard for this thread.
pub(crate) fn number() -> usize {
    // Relaxed: the numbers spread the threads and order nothing.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NUMBER.with(|number| {
        let found = number.get();
        let found = found.unwrap_or_else(|| NEXT.fetch_add(1, Relaxed));
        number.set(Some(found));
        found
    })
}

#[cfg(feature = "metrics")]
pub(crate) use sums::Sums;

#[cfg(feature = "metrics")]
mod sums {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use crossbeam_utils::CachePadded;

    /// Most machines have fewer I/O workers.
    const SHARDS: usize = 16;

    /// `N` sums that any thread adds to.
    #[derive(Debug)]
    pub(crate) struct Sums<const N: usize>([CachePadded<[AtomicU64; N]>; SHARDS]);

    impl<const N: usize> Default for Sums<N> {
        fn default() -> Self {
            let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
            Self(std::array::from_fn(|_| CachePadded::new(zeros())))
        }
    }

    // Relaxed: a sum is for a reader outside, and orders nothing. A shard alone means
    // nothing: what one thread adds another may subtract, so shards wrap around and
    // only their sum counts.
    impl<const N: usize> Sums<N> {
        pub(crate) fn add(&self, which: usize, amount: u64) {
            self.0[super::number() % SHARDS][which].fetch_add(amount, Relaxed);
        }

        pub(crate) fn subtract(&self, which: usize, amount: u64) {
            self.add(which, amount.wrapping_neg());
        }

        pub(crate) fn get(&self, which: usize) -> u64 {
            let shards = self.0.iter().map(|shard| shard[which].load(Relaxed));
            shards.fold(0, u64::wrapping_add)
        }
    }
}
