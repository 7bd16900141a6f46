//! twolane and Tokio, opened for one measurement.

use std::fmt;
use std::future::Future;
use std::hint::black_box;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::task::{JoinError, JoinHandle};
use twolane::{Handle, Niceness, Task};
use twolane_benches::{io_runtime, lane};

use crate::measure::{self, Spawn};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Twolane,
    /// Workers, and neither timers nor an I/O driver.
    Tokio,
    Goroutines,
}

impl Side {
    pub const ALL: [Self; 3] = [Self::Twolane, Self::Tokio, Self::Goroutines];
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Twolane => "twolane",
            Self::Tokio => "tokio, no drivers",
            Self::Goroutines => "goroutines",
        })
    }
}

/// How long `n` of a case take.
pub fn time(side: Side, threads: usize, case: &'static str, n: u64) -> Duration {
    match side {
        Side::Twolane => in_twolane(threads, case, n),
        _ => in_tokio(threads, case, n),
    }
}

/// Each path is gone once, not as often, before the clock starts.
fn warm_up(n: u64) -> u64 {
    n / 10 + 1
}

struct Tokio;

impl Spawn for Tokio {
    type Error = JoinError;
    type Task<T: Send + 'static> = JoinHandle<T>;

    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tokio::spawn(future)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }
}

fn in_tokio(threads: usize, case: &'static str, n: u64) -> Duration {
    let mut builder = Builder::new_multi_thread();
    let runtime = builder.worker_threads(threads).build().unwrap();
    // In a task: what `block_on` is given itself is not on a worker.
    let task = runtime.spawn(async move {
        measure::time(&Tokio, case, warm_up(n)).await;
        measure::time(&Tokio, case, n).await
    });
    runtime.block_on(task).unwrap()
}

impl Spawn for Handle {
    type Error = twolane::JoinError;
    type Task<T: Send + 'static> = Task<T>;

    fn spawn<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Handle::spawn(self, future)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        twolane::yield_now()
    }
}

fn in_twolane(threads: usize, case: &'static str, n: u64) -> Duration {
    // There because a lane has one; nothing here goes to it.
    let io = io_runtime(1);
    let cpu = lane(io.handle(), |lane| {
        lane.worker_threads(threads).niceness(Niceness::off())
    });
    let handle = cpu.handle().clone();
    let job = cpu.spawn(async move {
        let handle = &handle;
        let time = async |n| match case {
            "yield_if_due" => yield_if_due(n).await,
            case => measure::time(handle, case, n).await,
        };
        time(warm_up(n)).await;
        time(n).await
    });
    let took = job.wait().unwrap();
    cpu.shutdown().wait();
    took
}

/// In pieces that are shorter than a slice, which begins with the piece, so that none
/// of the calls is due; each less the same loop without the call.
async fn yield_if_due(calls: u64) -> Duration {
    const PIECE: u64 = 500_000;
    let mut net = 0;
    let mut left = calls;
    while left > 0 {
        let calls = left.min(PIECE);
        left -= calls;
        // A slice begins.
        twolane::yield_now().await;
        let begun = Instant::now();
        for n in 0..calls {
            black_box(n);
            twolane::yield_if_due().await;
        }
        let raw = begun.elapsed();
        let begun = Instant::now();
        for n in 0..calls {
            black_box(n);
        }
        net += raw.as_nanos() as i128 - begun.elapsed().as_nanos() as i128;
    }
    Duration::from_nanos(u64::try_from(net.max(1)).unwrap())
}
