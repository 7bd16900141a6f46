//! In place of `linux.rs`: on other platforms nice values belong to the whole process, and nothing
//! is known of cores, CPU clocks and policies. `macos.rs` and `windows.rs` have the functions of this
//! file but for a few of their own.

use std::io;
use std::time::Duration;

pub(crate) fn cpu_of_process() -> Option<Duration> {
    None
}

pub(crate) fn cpu_of_thread() -> Option<Duration> {
    None
}

pub(crate) fn own_cores() -> Vec<usize> {
    Vec::new()
}

pub(crate) fn bind_to(_core: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn release() -> (u32, u32) {
    (0, 0)
}

pub(crate) fn cores() -> Option<u32> {
    None
}

pub(crate) fn core() -> usize {
    0
}

pub(crate) fn leave_cores(_are_taken: impl Fn(&usize) -> bool) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn hand_down_cores(main: impl FnOnce() + Send) -> impl FnOnce() + Send {
    main
}

pub(crate) fn nice() -> i32 {
    0
}

pub(crate) fn set_nice(_nice: i32) -> io::Result<()> {
    Ok(())
}

pub(crate) fn set_slice(_slice: Duration) -> io::Result<()> {
    Ok(())
}

pub(crate) fn join_idle_class() -> io::Result<()> {
    Ok(())
}

pub(crate) fn odd_policy() -> Option<String> {
    None
}
