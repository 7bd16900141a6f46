//! Keeps Tokio's paused clock from advancing while a job is queued or runs on the lane.
//!
//! After `tokio::time::pause`, an idle runtime advances its clock to the next timer.
//! The runtime does not see a job that runs elsewhere, so a timeout around the job's
//! task would fire at once. But the runtime sees `spawn_blocking`: it does not advance
//! the clock while such a closure runs. So one closure of that kind waits from the
//! submission of a job, or its wake-up, until its awaiter has been woken, or the job waits.
//! It waits on the blocking pool of the runtime whose clock may be paused.

use std::mem;
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Handle, RuntimeFlavor};

/// The clock does not advance until this is dropped.
pub(crate) type ClockHold = Sender<()>;

/// A job's share in the clock.
#[derive(Default)]
pub(super) struct HeldClock {
    hold: Mutex<Option<ClockHold>>,
    /// The I/O lane's runtime. `None` if the lane holds no clock.
    pub(super) io: Option<Handle>,
}

impl HeldClock {
    pub(super) fn hold(&self) {
        if let Some(io) = &self.io {
            self.replace(hold(io));
        }
    }

    pub(super) fn take(&self) -> Option<ClockHold> {
        self.io.as_ref()?;
        self.replace(None)
    }

    fn replace(&self, hold: Option<ClockHold>) -> Option<ClockHold> {
        let mut held = self.hold.lock().unwrap_or_else(PoisonError::into_inner);
        mem::replace(&mut held, hold)
    }
}

/// Holds the clock of the I/O lane's runtime, or else of this thread's runtime.
/// Only a runtime with one thread can have a paused clock; `None` if neither is of
/// that kind.
fn hold(io: &Handle) -> Option<ClockHold> {
    let runtimes = [Some(io.clone()), Handle::try_current().ok()];
    let can_be_paused = |runtime: &Handle| runtime.runtime_flavor() == RuntimeFlavor::CurrentThread;
    let runtime = runtimes.into_iter().flatten().find(can_be_paused)?;
    let (until_dropped, wait) = mpsc::channel();
    drop(runtime.spawn_blocking(move || wait.recv()));
    Some(until_dropped)
}
