//! Keeps a paused clock of Tokio's from running ahead of a closure on the lane.
//!
//! With `tokio::time::pause` a runtime that has nothing to do moves its clock on to
//! the next timer. It sees nothing of a job that runs elsewhere, so a timeout
//! around its task would fire at once. What it does see is `spawn_blocking`: as
//! long as such a closure is under way, the clock stands. So from the submission of
//! a closure until its awaiter has been woken, one waits on the runtime whose clock
//! that may be, on a thread of its blocking pool.

use std::sync::mpsc::{self, Sender};

use tokio::runtime::{Handle, RuntimeFlavor};

/// The clock stands until this is dropped.
pub(crate) struct ClockHold {
    _until_dropped: Sender<()>,
}

impl ClockHold {
    /// On the I/O lane's runtime, or that of this thread, whichever is of the kind
    /// whose clock can be paused.
    pub(super) fn new(io: &Handle) -> Option<Self> {
        let runtimes = [Some(io.clone()), Handle::try_current().ok()];
        let can_be_paused =
            |runtime: &Handle| runtime.runtime_flavor() == RuntimeFlavor::CurrentThread;
        let runtime = runtimes.into_iter().flatten().find(can_be_paused)?;
        let (until_dropped, wait) = mpsc::channel();
        drop(runtime.spawn_blocking(move || wait.recv()));
        Some(Self {
            _until_dropped: until_dropped,
        })
    }
}
