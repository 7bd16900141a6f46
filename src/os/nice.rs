//! A thread's weight on Linux: its nice value, from 0 (or what the process was
//! started with) to 19, and whether it is of the kernel's idle class. Taking
//! weight off needs no privilege, putting it on does, and a new thread has that
//! of the thread that makes it; hence `starter.rs`.
//!
//! Elsewhere a nice value belongs to the whole process, and these functions do
//! nothing.

use std::io;

pub(crate) const MAX_NICE: u8 = 19;

/// Whether a thread can have a weight of its own here.
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

    /// That of a thread born with `base_nice` which has raised it.
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
    // Linux takes "this process" for "this thread".
    rustix::process::getpriority_process(None).unwrap_or(0)
}

/// Gives this thread that weight; never a greater one than it has.
#[cfg(target_os = "linux")]
pub(crate) fn apply(niceness: Niceness) -> io::Result<()> {
    #[cfg(feature = "idle-class")]
    // Before the nice value: thread-priority sets that to 0, or tries to.
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
