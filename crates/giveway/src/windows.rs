//! What the crate asks of Windows: the priority of a thread, within the class of its process. No
//! thread inherits it, so the process's own nice value is 0, and a new thread's as well.

use std::io;

use thread_priority::{
    WinAPIThreadPriority, get_current_thread_priority, set_winapi_thread_priority, thread_native_id,
};

#[path = "elsewhere.rs"]
#[allow(dead_code, reason = "this file has some of its functions")]
mod elsewhere;

pub(crate) use elsewhere::*;

pub(crate) fn set_nice(nice: i32) -> io::Result<()> {
    match nice {
        ..=8 => fall_to(WinAPIThreadPriority::BelowNormal),
        _ => fall_to(WinAPIThreadPriority::Lowest),
    }
}

pub(crate) fn join_idle_class() -> io::Result<()> {
    fall_to(WinAPIThreadPriority::Idle)
}

/// Not if the thread has a lower one. Windows would raise it, on Linux that takes a privilege.
fn fall_to(priority: WinAPIThreadPriority) -> io::Result<()> {
    let own = get_current_thread_priority().and_then(WinAPIThreadPriority::try_from);
    if own.is_ok_and(|own| own <= priority) {
        return Ok(());
    }
    let set = set_winapi_thread_priority(thread_native_id(), priority);
    set.map_err(|refused| io::Error::other(format!("not {priority:?}: {refused:?}")))
}
