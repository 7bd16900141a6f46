//! What the crate asks of macOS: a thread's CPU clock. Not the process's, which is for a quota. What
//! its scheduler goes by is a thread's class of quality of service, for which there is no call
//! without `unsafe` that we rely on.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

#[path = "elsewhere.rs"]
#[allow(dead_code, reason = "this file has some of its functions")]
mod elsewhere;

pub(crate) use elsewhere::*;

pub(crate) fn cpu_of_thread() -> Option<Duration> {
    clock_gettime(ClockId::ThreadCPUTime).try_into().ok()
}
