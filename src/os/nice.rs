//! A thread's weight on Linux: its nice value, from 0 (or what the process was
//! started with) to 19. Raising it needs no privilege, lowering it does, and a
//! new thread has that of the thread that makes it; hence `starter.rs`.
//!
//! Elsewhere a nice value belongs to the whole process, and these functions do
//! nothing.

use std::io;

pub(crate) const MAX: u8 = 19;

/// Whether a thread can have a weight of its own here.
pub(crate) const SUPPORTED: bool = cfg!(target_os = "linux");

/// The nice value of this thread.
#[cfg(target_os = "linux")]
pub(crate) fn current() -> i32 {
    // Linux takes "this process" for "this thread".
    rustix::process::getpriority_process(None).unwrap_or(0)
}

/// Raises this thread's nice value to `target`; never lowers it.
#[cfg(target_os = "linux")]
pub(crate) fn raise_to(target: i32) -> io::Result<()> {
    if current() >= target {
        return Ok(());
    }
    rustix::process::setpriority_process(None, target).map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn current() -> i32 {
    0
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn raise_to(_target: i32) -> io::Result<()> {
    Ok(())
}
