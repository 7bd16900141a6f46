//! What the benches of the I/O lane's tail share: an echo server as a task of the I/O lane, a
//! client that asks it on a fixed schedule, and a CPU load of fixed jobs.

pub mod client;
pub mod echo;
mod job;
pub mod lanes;
pub mod load;
pub mod work;

use std::time::{Duration, Instant};

/// What a job of the load takes on an idle core.
pub const JOB: Duration = Duration::from_millis(5);

/// At the start of a slice pools start their threads, caches fill, and the kernel
/// finds out which threads are interactive: what is sent then does not count.
pub const WARM_UP: Duration = Duration::from_millis(300);

/// For what a slice takes besides its measured time: the last answer, the pools' threads.
pub const REST: Duration = Duration::from_secs(60);

pub fn sleep_until(then: Instant) {
    std::thread::sleep(then.saturating_duration_since(Instant::now()));
}
