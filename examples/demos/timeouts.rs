//! A request gives up after 100 ms, and its work on the CPU takes 200 ms. What goes on?
//!
//! Each quarter of a second four requests come, on two threads. As people do it, the work is in
//! `spawn_blocking`: the closure goes on without an awaiter. On twolane the timeout drops the task:
//! what was queued never starts, and a closure that asks its `JobContext` ends at once.
//!
//! The figure is the CPU time of the process until the last of it has ended (on Linux). It fails if
//! a closure that asks is not cheaper. It says nothing of requests that are answered: none is.
//! `docs/timeouts.md` has deadlines and limits.
//!
//! ```text
//! cargo run --release -p demos --example timeouts   # 10 seconds
//! ```

use std::hint::black_box;
use std::time::{Duration, Instant};

use twolane::{Cancelled, CpuRuntime};

const REQUESTS: usize = 40;
const THREADS: usize = 2;
const AT_A_TIME: usize = 4;
const WORK: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_millis(100);
const PERIOD: Duration = Duration::from_millis(250);

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

/// Sends the requests, each by `request`. Returns how many were answered in time.
async fn all<F>(request: impl Fn() -> F) -> usize
where
    F: Future<Output = bool> + Send + 'static,
{
    let mut requests = tokio::task::JoinSet::new();
    let mut next = tokio::time::interval(PERIOD);
    for _ in 0..REQUESTS / AT_A_TIME {
        next.tick().await;
        for _ in 0..AT_A_TIME {
            requests.spawn(tokio::time::timeout(PATIENCE, request()));
        }
    }
    let outcomes = requests.join_all().await;
    outcomes
        .into_iter()
        .filter(|outcome| *outcome == Ok(true))
        .count()
}

/// Prints a row, and returns the CPU time.
fn tell(contender: &str, answered: usize, since: (Instant, Duration)) -> Duration {
    let (wall, cpu) = (since.0.elapsed(), cpu_time::of_process() - since.1);
    println!("{contender:<44}{answered:>8}{cpu:>12.2?}{wall:>12.2?}");
    cpu
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{REQUESTS} requests, {WORK:?} of computing each, given up after {PATIENCE:?}\n");
    println!(
        "{:<44}{:>8}{:>12}{:>12}",
        "", "answered", "CPU time", "until idle"
    );
    let now = || (Instant::now(), cpu_time::of_process());

    let io = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(THREADS)
        .enable_all()
        .build()?;
    let start = now();
    let found = io.block_on(all(|| async {
        let work = tokio::task::spawn_blocking(|| compute(|| Ok(())));
        work.await.is_ok_and(|output| output.is_ok())
    }));
    // Waits for what runs, and drops what is queued.
    drop(io);
    let published = tell("tokio::task::spawn_blocking", found, start);
    let mut ours = Duration::ZERO;

    for asks in [false, true] {
        let io = tokio::runtime::Runtime::new()?;
        let cpu = CpuRuntime::builder();
        let cpu = cpu
            .io_handle(io.handle().clone())
            .worker_threads(THREADS)
            .build()?;
        let start = now();
        let found = io.block_on(all(|| {
            let work = if asks {
                cpu.spawn_cpu_with(|job| compute(|| job.checkpoint()))
            } else {
                cpu.spawn_cpu_with(|_| compute(|| Ok(())))
            };
            async { work.await.is_ok() }
        }));
        cpu.shutdown().wait();
        let contender = if asks {
            "twolane, the closure asks its `JobContext`"
        } else {
            "twolane, the closure does not ask"
        };
        ours = tell(contender, found, start);
    }
    if cfg!(not(target_os = "linux")) {
        println!("\nHere the CPU time is not known: there is no verdict.");
        return Ok(());
    }
    if ours > published {
        return Err("a closure that asks took as much".into());
    }
    println!(
        "\nAfter a timeout `spawn_blocking` computes all; on twolane a closure that asks ends."
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
