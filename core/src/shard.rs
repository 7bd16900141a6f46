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
