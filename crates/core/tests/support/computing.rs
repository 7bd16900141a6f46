//! Computes for a time of its own thread: on a busy machine that takes longer.

use std::time::Duration;

/// Of this thread.
#[cfg(unix)]
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// rustix reads no clock of a thread on Windows: the time that passes.
#[cfg(not(unix))]
fn cpu_time() -> Duration {
    static BEGAN: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    BEGAN.elapsed()
}

pub(crate) fn compute_for(time: Duration) {
    let began = cpu_time();
    while cpu_time() - began < time {}
}
