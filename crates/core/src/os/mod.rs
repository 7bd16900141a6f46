//! What the crate needs from the operating system: nice values, threads and what they do,
//! the cores that they may use, quotas, CPU clocks.

pub(crate) mod nice;
#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
pub(crate) mod platform;
pub(crate) mod preemption;
mod quota;
pub(crate) mod sizing;
pub(crate) mod spread;
pub(crate) mod starter;
pub(crate) mod surroundings;
pub(crate) mod throttle;

use std::io;

/// Call after a push, or where a worker has unparked, and a fence.
pub(crate) use preemption::note_work;

/// Starts what the process has one of, if it has none yet. Returns the nice value that new threads
/// start with.
pub(crate) fn start() -> io::Result<i32> {
    preemption::start()?;
    let base_nice = starter::base_nice()?;
    surroundings::look(base_nice);
    Ok(base_nice)
}
