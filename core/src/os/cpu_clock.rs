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

/// The CPU time of another thread of this process, as `/proc` has it.
#[cfg(target_os = "linux")]
pub(crate) fn of_other_thread(thread: super::nice::ThreadId) -> Option<Duration> {
    let path = format!("/proc/self/task/{}/schedstat", thread.as_raw_nonzero());
    let text = std::fs::read_to_string(path).ok()?;
    let nanos = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
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

#[cfg(not(target_os = "linux"))]
pub(crate) fn of_other_thread(_thread: super::nice::ThreadId) -> Option<Duration> {
    None
}
