//! The clock of all measures.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The time since the first call, in nanoseconds, and never 0.
pub(crate) fn now() -> u64 {
    static EPOCH: LazyLock<Instant> = LazyLock::new(|| Instant::now() - Duration::from_nanos(1));
    nanos(EPOCH.elapsed())
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
