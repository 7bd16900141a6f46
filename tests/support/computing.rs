//! Computes for a time of its own thread: on a busy machine that takes longer.

use std::time::Duration;

/// Of this thread.
#[cfg(target_os = "linux")]
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Elsewhere time that passes has to do.
#[cfg(not(target_os = "linux"))]
fn cpu_time() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

pub(crate) fn compute_for(time: Duration) {
    let began = cpu_time();
    while cpu_time() - began < time {}
}
