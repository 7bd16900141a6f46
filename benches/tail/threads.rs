//! How many threads this process has: a contender's must be gone before the
//! next one begins, and not all of the pools wait for theirs.

use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(20);

/// `None` where there is no `/proc`.
pub fn count() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

/// Waits until there are no more than `before`.
///
/// # Panics
/// If some stay.
pub fn wait_until_gone(before: Option<usize>) {
    let Some(before) = before else {
        // It can't be seen here; this is long for threads with nothing to do.
        std::thread::sleep(Duration::from_millis(200));
        return;
    };
    let start = Instant::now();
    loop {
        let now = count().unwrap_or(before);
        if now <= before {
            return;
        }
        assert!(
            start.elapsed() < LIMIT,
            "{} threads were left behind",
            now - before
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}
