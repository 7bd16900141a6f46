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
pub(crate) struct Weight {
    pub(crate) nice: i32,
    /// `SCHED_IDLE`. A nice value alone does not tell the kernel that whoever
    /// wakes up may have this thread's core: it looks for an idle one, finds
    /// none, and lets two that are urgent queue for the same core, for
    /// milliseconds, while a light one has the other.
    pub(crate) idle: bool,
}

impl Weight {
    /// That of a thread born with `birth_nice` which has raised it.
    pub(crate) fn after_raise(birth_nice: i32, by: u8) -> Self {
        Self {
            nice: (birth_nice + i32::from(by)).min(MAX_NICE.into()),
            idle: by == MAX_NICE,
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
pub(crate) fn take_on(weight: Weight) -> io::Result<()> {
    use thread_priority::NormalThreadSchedulePolicy::Idle;
    use thread_priority::{
        Error, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
        thread_native_id,
    };

    if current_nice() < weight.nice {
        rustix::process::setpriority_process(None, weight.nice)?;
    }
    if !weight.idle {
        return Ok(());
    }
    // `Min` is nice 19, which it has.
    let idle = ThreadSchedulePolicy::Normal(Idle);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle).map_err(|error| {
        match error {
            Error::OS(errno) => io::Error::from_raw_os_error(errno),
            other => io::Error::other(format!("{other:?}")),
        }
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn current_nice() -> i32 {
    0
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn take_on(_weight: Weight) -> io::Result<()> {
    Ok(())
}
