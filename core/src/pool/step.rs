//! Runs one step of a job, and wakes the awaiter if the job has ended.
//!
//! With a relay (`io_lane/relay.rs`), the caller of the step wakes the awaiter, and not the step
//! itself. If the queue is empty, the lane is about to be idle, and the I/O runtime may be: then the
//! relay wakes it.
//!
//! A short job ends before the I/O worker that has submitted it parks. So a thread that would
//! spin for the next job anyway waits [`TO_PARK`] for that.

use std::hint;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::lane::Level;
use crate::panics;
use crate::task::{Run, StepEnd, Worker};

const TO_PARK: Duration = Duration::from_micros(5);

/// `spins`: the thread spins for the next job if there is none.
#[inline]
pub(super) fn run(
    job: Arc<dyn Run>,
    worker: &mut Worker<'_>,
    level: &Level,
    spins: bool,
) -> StepEnd {
    let end = job.run(worker);
    if let StepEnd::Ended = end {
        if let Some(awaiter) = worker.awaiter.take() {
            wake(awaiter, level, spins);
        }
    }
    end
}

fn wake(awaiter: Waker, level: &Level, spins: bool) {
    let Some(relay) = level.lane().io.relay().filter(|_| !level.has_queued()) else {
        return panics::wake(awaiter);
    };
    let mut start = None;
    relay.wake(awaiter, || {
        hint::spin_loop();
        spins && !level.has_queued() && start.get_or_insert_with(Instant::now).elapsed() < TO_PARK
    });
}

/// For a thread that has had nothing to do for a while: wakes what the relay has not.
pub(super) fn wake_leftovers(level: &Level) {
    if let Some(relay) = level.lane().io.relay() {
        relay.wake_leftovers();
    }
}
