//! A thread's niceness on Linux: its nice value, and whether it is in the kernel's idle
//! class.
//!
//! A nice value is between 0 (or the value that the process was started with) and 19.
//! Raising it needs no privilege, lowering it does. A new thread inherits the niceness
//! of the thread that spawns it; hence `starter.rs`.
//!
//! On other platforms a nice value belongs to the whole process. There these functions
//! do nothing.

use std::io;

pub(crate) const MAX_NICE: u8 = 19;

/// Whether a thread can have a nice value of its own here.
pub(crate) const SUPPORTED: bool = cfg!(target_os = "linux");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Niceness {
    pub(crate) nice: i32,
    /// `SCHED_IDLE`.
    #[cfg(feature = "idle-class")]
    pub(crate) idle: bool,
}

impl Niceness {
    #[cfg(feature = "idle-class")]
    pub(crate) const IDLE: Self = Self {
        nice: MAX_NICE as i32,
        idle: true,
    };

    /// The niceness of a thread that starts with `base_nice` and raises it by `by`.
    pub(crate) fn raised_by(base_nice: i32, by: u8) -> Self {
        Self {
            nice: (base_nice + i32::from(by)).min(MAX_NICE.into()),
            #[cfg(feature = "idle-class")]
            idle: false,
        }
    }
}

/// The nice value of this thread.
#[cfg(target_os = "linux")]
pub(crate) fn current_nice() -> i32 {
    // Linux applies this call to the calling thread, not to its process.
    rustix::process::getpriority_process(None).unwrap_or(0)
}

/// Gives this thread the niceness. Never lowers its nice value.
#[cfg(target_os = "linux")]
pub(crate) fn apply(niceness: Niceness) -> io::Result<()> {
    #[cfg(feature = "idle-class")]
    // Before the nice value: thread-priority also sets that to 0, or tries to.
    let class = if niceness.idle {
        join_idle_class()
    } else {
        Ok(())
    };
    #[cfg(not(feature = "idle-class"))]
    let class = Ok(());
    if current_nice() < niceness.nice {
        rustix::process::setpriority_process(None, niceness.nice)?;
    }
    class
}

#[cfg(all(target_os = "linux", feature = "idle-class"))]
fn join_idle_class() -> io::Result<()> {
    use thread_priority::NormalThreadSchedulePolicy::Idle;
    use thread_priority::{
        ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
        thread_schedule_policy,
    };

    let idle = ThreadSchedulePolicy::Normal(Idle);
    let set = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
    if thread_schedule_policy() == Ok(idle) {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "not of the idle class: {:?}",
        set.err()
    )))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn current_nice() -> i32 {
    0
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn apply(_niceness: Niceness) -> io::Result<()> {
    Ok(())
}
