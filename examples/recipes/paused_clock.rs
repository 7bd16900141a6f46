//! Tests with Tokio's paused clock: timeouts around tasks, without real seconds.
//!
//! For tests of code that has a timeout or a `sleep` around jobs. With
//! `#[tokio::test(start_paused = true)]` Tokio advances the clock as soon as its runtime is idle.
//! It does not see the lane's jobs, so a timeout around a task would fire at once, while the job
//! still runs. `Builder::hold_paused_clock` (feature `test-util`) holds the clock while jobs are
//! queued or run. Copy [`cpu_lane`], and build one lane per test.
//!
//! A paused clock cannot limit a test, since it stands still while a job runs. Use the time limit
//! of your test runner. Deadlines (`Handle::with_deadline`) and `shutdown_timeout` use real time.
//!
//! To copy it: `cargo add --dev twolane -F test-util` and
//! `cargo add --dev tokio -F full,test-util`.

use std::future::pending;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use twolane::{CpuRuntime, Handle, JoinErrorKind, Task};

/// The code under test: the output of a job, unless it takes too long.
async fn in_time<T>(job: Task<T>) -> Result<T, &'static str> {
    job.within(Duration::from_secs(5))
        .await
        .map_err(|error| match error.kind() {
            JoinErrorKind::Expired => "too late", // the job is cancelled
            _ => "the job failed",
        })
}

/// The code under test: a job now, and one more each hour.
async fn hourly(cpu: &Handle, times: u32) -> Result<u64, twolane::JoinError> {
    let mut sum = 0;
    for n in 0..times {
        if n > 0 {
            sleep(Duration::from_secs(3_600)).await;
        }
        sum += cpu.spawn_cpu(|| (1..=1_000_u64).sum::<u64>()).await?;
    }
    Ok(sum)
}

fn cpu_lane() -> CpuRuntime {
    let builder = CpuRuntime::builder().worker_threads(1);
    builder.hold_paused_clock(true).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_job_that_computes_is_in_time() {
    let cpu = cpu_lane();
    let before = Instant::now();
    let sum = cpu.spawn_cpu(|| (1..=10_000_000_u64).map(|n| n ^ n >> 3).max());
    assert!(in_time(sum).await.unwrap().is_some());
    assert_eq!(before.elapsed(), Duration::ZERO); // the clock stood still
}

#[tokio::test(start_paused = true)]
async fn hours_pass_at_once() {
    let cpu = cpu_lane();
    let before = Instant::now();
    assert_eq!(hourly(cpu.handle(), 3).await.unwrap(), 3 * 500_500);
    assert_eq!(before.elapsed(), Duration::from_secs(2 * 3_600));
}

/// A future that waits lets the clock go, since it may wait for the clock.
#[tokio::test(start_paused = true)]
async fn a_job_that_waits_is_too_late() {
    let cpu = cpu_lane();
    let before = Instant::now();
    assert_eq!(in_time(cpu.spawn(pending::<()>())).await, Err("too late"));
    assert_eq!(before.elapsed(), Duration::from_secs(5));
}
