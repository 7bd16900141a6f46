//! What the benches of the I/O lane's tail share: an echo server as a task of the I/O lane, a
//! client that asks it on a fixed schedule, and a CPU load of fixed jobs.

pub mod client;
pub mod echo;
mod job;
pub mod lanes;
pub mod load;
pub mod work;

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::findings::empty_histogram;

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

/// Asks each `every` until `end`, and returns the nanoseconds from when each request was due to its
/// answer. While an answer is late, the next requests are late too. Those that are due before
/// `counts_from` do not count.
pub fn ask_each<E>(
    every: Duration,
    counts_from: Instant,
    end: Instant,
    mut ask: impl FnMut() -> Result<(), E>,
) -> Result<Histogram<u64>, E> {
    let mut latencies = empty_histogram();
    let mut due = Instant::now();
    while due < end {
        sleep_until(due);
        ask()?;
        if due >= counts_from {
            latencies.saturating_record(due.elapsed().as_nanos() as u64);
        }
        due += every;
    }
    Ok(latencies)
}
