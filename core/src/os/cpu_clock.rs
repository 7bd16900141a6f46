//! CPU time of threads, as the kernel counts it. Linux only.

use std::time::Duration;

/// The CPU time of all threads of this process, including threads that have ended.
#[cfg(target_os = "linux")]
pub(crate) fn of_process() -> Option<Duration> {
    read(rustix::time::ClockId::ProcessCPUTime)
}

/// The CPU time of this thread.
#[cfg(target_os = "linux")]
pub(crate) fn of_thread() -> Option<Duration> {
    read(rustix::time::ClockId::ThreadCPUTime)
}

#[cfg(target_os = "linux")]
pub(super) fn read(clock: rustix::time::ClockId) -> Option<Duration> {
    let time = rustix::time::clock_gettime(clock);
    let nanos = u32::try_from(time.tv_nsec).ok()?;
    Some(Duration::new(time.tv_sec.try_into().ok()?, nanos))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn of_process() -> Option<Duration> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn of_thread() -> Option<Duration> {
    None
}
