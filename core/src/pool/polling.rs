//! The workers of the rayon backend where the depth of a stack tells nothing: locals are
//! not on the stack under AddressSanitizer, and at random addresses under Miri.
//!
//! There, a drain job cannot find out whether its worker waits inside another job (see
//! `stack.rs`). Each worker takes one rayon job at the start, at the bottom of its stack,
//! and stays in it until the lane is shut down. It pops the lane's jobs there and nowhere
//! else, and gives rayon's own work a turn after each. Rayon cannot wake it, so it polls.
//! That costs a wake-up a millisecond for each worker, and a job may wait that long. So may
//! an `install` and rayon's own jobs.

use std::thread;
use std::time::Duration;

use super::drain::run_rayons_work;
use crate::lane::{Level, Popped};
use crate::task::{StepEnd, budget};

const PAUSE: Duration = Duration::from_millis(1);

/// Serves the level until `is_over` returns true and no job is queued.
pub(super) fn serve(level: &Level, is_over: impl Fn() -> bool) {
    // It counts on the page that threads without an index share: it is slow anyway.
    let mut worker = level.worker(None);
    loop {
        while let Some(popped) = level.pop() {
            budget::refill();
            let role = popped.role();
            if let StepEnd::Requeue { job, yielded } = level.run(popped, &mut worker) {
                level.put_back(Popped::again(job, role), yielded);
            }
            run_rayons_work();
        }
        if is_over() {
            return;
        }
        if !run_rayons_work() {
            thread::sleep(PAUSE);
        }
    }
}
