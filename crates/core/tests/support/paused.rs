//! A paused clock of Tokio's that a lane of one thread holds while it computes.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use std::time::Duration;

use tokio::time::{Instant, timeout};
use twolane_core::CpuRuntime;

/// The test has its time limit by that.
pub fn lane() -> CpuRuntime {
    crate::support::limit_this_thread();
    let settings = CpuRuntime::builder().worker_threads(1);
    settings.hold_paused_clock(true).build().unwrap()
}

pub const SECOND: Duration = Duration::from_secs(1);

/// For long enough that a runtime that takes itself for idle has moved its clock.
pub fn compute() {
    for _ in 0..2_000 {
        std::thread::yield_now();
    }
}

/// Awaits it with a timeout: meanwhile no time passes.
pub async fn stands<T>(awaited: impl Future<Output = T>) -> T {
    let start = Instant::now();
    let output = timeout(SECOND, awaited).await.expect("the clock stands");
    assert_eq!(start.elapsed(), Duration::ZERO);
    output
}
