//! What the two benches of the I/O lane's tail share: an echo server as a task
//! of the I/O lane, a client that asks it on a fixed schedule, and a CPU load
//! of fixed jobs.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each bench uses a part of it, and none is a library"
)]

pub mod client;
pub mod echo;
pub mod figures;
pub mod findings;
pub mod lanes;
pub mod load;
pub mod rounds;
pub mod work;

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// What a job of the load takes on an idle core.
pub const JOB: Duration = Duration::from_millis(5);

/// At the start of a slice pools start their threads, caches and the kernel's
/// ideas of who is interactive settle: what is sent then is not counted.
pub const WARM_UP: Duration = Duration::from_millis(300);

pub fn sleep_until(then: Instant) {
    std::thread::sleep(then.saturating_duration_since(Instant::now()));
}

/// Drawn between slices alone: a bar that ticks would have a thread of its own
/// in them.
pub fn progress(slices: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} (done in {eta})");
    ProgressBar::new(slices as u64).with_style(style.unwrap())
}
