//! Runs one step of a job, and wakes the awaiter if the job has ended.
//!
//! If the queue is empty then, the lane may be idle, and so may the I/O runtime: its own driver is
//! the cheapest way to wake the awaiter (`io_lane/relay.rs`). In a batch the I/O workers run, and
//! a foreign wake-up unparks none of them.
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
        let start = *start.get_or_insert_with(Instant::now);
        spins && !level.has_queued() && start.elapsed() < TO_PARK
    });
}

/// For a thread that has waited for long: wakes what the driver has not.
pub(super) fn wake_leftovers(level: &Level) {
    if let Some(relay) = level.lane().io.relay() {
        relay.wake_leftovers();
    }
}
