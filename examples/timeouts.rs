//! What a timeout around CPU work saves: with `spawn_blocking` nothing, since the
//! closure goes on without an awaiter; with a task of twolane's all that
//! had not been computed yet.
//!
//! Each half second four requests, which ask for 200 ms of computing each, on two
//! threads, and wait for 100 ms at most. How much CPU time does that take, until
//! the last of it has ended? (The process's own, on Linux.)
//!
//! ```text
//! cargo run --release --example timeouts
//! ```

use std::hint::black_box;
use std::time::{Duration, Instant};

use twolane::{Cancelled, CpuRuntime};

const THREADS: usize = 2;
const AT_A_TIME: usize = 4;
const WORK: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_millis(100);
const PERIOD: Duration = Duration::from_millis(500);

/// Computes for `WORK` of its thread's own time, and asks now and then whether
/// that is wanted still.
fn compute(mut is_wanted: impl FnMut() -> Result<(), Cancelled>) -> Result<u64, Cancelled> {
    let end = cpu_time::of_thread() + WORK;
    let mut sum = 0_u64;
    while cpu_time::of_thread() < end {
        is_wanted()?;
        for n in 0..10_000 {
            sum = black_box(sum.wrapping_mul(31).wrapping_add(n));
        }
    }
    Ok(sum)
}

#[derive(Default)]
struct Found {
    answered: usize,
    timed_out: usize,
}

/// Sends the requests, each by `request`, and counts what they found.
async fn all<F>(requests: usize, request: impl Fn() -> F) -> Found
where
    F: Future<Output = bool>,
{
    let mut found = Found::default();
    let mut next = tokio::time::interval(PERIOD);
    for _ in 0..requests / AT_A_TIME {
        next.tick().await;
        let batch = (0..AT_A_TIME).map(|_| tokio::time::timeout(PATIENCE, request()));
        for outcome in futures::future::join_all(batch).await {
            match outcome {
                Ok(true) => found.answered += 1,
                _ => found.timed_out += 1,
            }
        }
    }
    found
}

fn tell(contender: &str, found: &Found, since: (Instant, Duration)) {
    let (wall, cpu) = (since.0.elapsed(), cpu_time::of_process() - since.1);
    println!(
        "{contender:<42} {:>8} {:>10} {:>10.2} s {:>10.2} s",
        found.answered,
        found.timed_out,
        cpu.as_secs_f64(),
        wall.as_secs_f64(),
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let is_quick = std::env::args().any(|arg| arg == "--quick");
    let requests = if is_quick { 8 } else { 40 };
    println!("{requests} requests, {WORK:?} of computing each, given up after {PATIENCE:?}\n");
    println!(
        "{:<42} {:>8} {:>10} {:>12} {:>12}",
        "", "answered", "timed out", "CPU time", "until idle"
    );
    let now = || (Instant::now(), cpu_time::of_process());

    let io = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(THREADS)
        .enable_all()
        .build()?;
    let start = now();
    let found = io.block_on(all(requests, || async {
        let work = tokio::task::spawn_blocking(|| compute(|| Ok(())));
        work.await.is_ok_and(|output| output.is_ok())
    }));
    // Waits for what runs, and drops what is queued.
    drop(io);
    tell("tokio::task::spawn_blocking", &found, start);

    for asks in [false, true] {
        let io = tokio::runtime::Runtime::new()?;
        let cpu = CpuRuntime::builder();
        let cpu = cpu
            .io_handle(io.handle().clone())
            .worker_threads(THREADS)
            .build()?;
        let start = now();
        let found = io.block_on(all(requests, || async {
            let lane = cpu.handle();
            let work = if asks {
                lane.spawn_cpu_with(|job| compute(|| job.checkpoint()))
            } else {
                lane.spawn_cpu_with(|_| compute(|| Ok(())))
            };
            work.await.is_ok()
        }));
        cpu.shutdown().wait();
        let contender = if asks {
            "twolane, the closure asks its `JobContext`"
        } else {
            "twolane, the closure does not ask"
        };
        tell(contender, &found, start);
    }
    println!(
        "\nThe timeout drops the task. What was queued then never starts, and a closure that asks\n\
         ends at once; one that does not runs on, and so does one of `spawn_blocking`, queued\n\
         or not."
    );
    Ok(())
}

mod cpu_time {
    use std::time::Duration;

    #[cfg(target_os = "linux")]
    pub(crate) fn of_process() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::try_from(time).expect("it is not negative")
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn of_thread() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(time).expect("it is not negative")
    }

    /// Not known here.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of_process() -> Duration {
        Duration::ZERO
    }

    /// On a machine that has nothing else to do.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of_thread() -> Duration {
        static START: std::sync::LazyLock<std::time::Instant> =
            std::sync::LazyLock::new(std::time::Instant::now);
        START.elapsed()
    }
}
