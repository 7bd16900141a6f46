//! Keeps a paused clock of Tokio's from running ahead of the lane.
//!
//! With `tokio::time::pause` a runtime that has nothing to do moves its clock on to
//! the next timer. It sees nothing of a job that runs elsewhere, so a timeout
//! around its task would fire at once. What it does see is `spawn_blocking`: as
//! long as such a closure is under way, the clock stands. So while a job is queued
//! or runs, one waits on the runtime whose clock that may be (a thread of its
//! blocking pool), until whoever awaits has been woken.
//!
//! Not while the job is suspended: what it waits for may be that very clock.

use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Handle, RuntimeFlavor};

pub(crate) struct ClockHold {
    runtime: Handle,
    held: Mutex<Held>,
}

/// A job may be woken before the step that it rests after has let go.
#[derive(Default)]
struct Held {
    times: usize,
    until_dropped: Option<Sender<()>>,
}

impl ClockHold {
    /// On the I/O lane's runtime, or that of this thread, whichever is of the kind
    /// whose clock can be paused.
    pub(super) fn of(io: &Handle) -> Option<Self> {
        let here = Handle::try_current();
        let runtimes = [Some(io.clone()), here.ok()];
        let can_be_paused =
            |runtime: &Handle| runtime.runtime_flavor() == RuntimeFlavor::CurrentThread;
        let runtime = runtimes.into_iter().flatten().find(can_be_paused)?;
        let hold = Self {
            runtime,
            held: Mutex::default(),
        };
        hold.take();
        Some(hold)
    }

    pub(super) fn take(&self) {
        self.with_held(|held| {
            held.times += 1;
            held.until_dropped.get_or_insert_with(|| {
                let (until_dropped, wait) = mpsc::channel();
                drop(self.runtime.spawn_blocking(move || wait.recv()));
                until_dropped
            });
        });
    }

    pub(super) fn let_go(&self) {
        self.with_held(|held| {
            held.times -= 1;
            if held.times == 0 {
                held.until_dropped = None;
            }
        });
    }

    fn with_held(&self, f: impl FnOnce(&mut Held)) {
        f(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
