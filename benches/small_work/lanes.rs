//! The two lanes, and one slice on them.

use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use twolane_benches::tail::client::Latencies;
use twolane_benches::{Sample, cpu_time, io_runtime, lane};

use crate::pieces::{Pieces, Stream};
use crate::wakeups::{OtherTask, Schedule};
use crate::ways::{self, Way};

pub const IO_RUNTIMES: [&str; 2] = ["two workers", "current thread"];

/// Of one way of handling pieces of one size.
#[derive(Clone, Copy)]
pub struct Span {
    /// Threads start, and the kernel finds out which ones are interactive.
    pub warm_up: Duration,
    pub measured: Duration,
}

/// The CPU time is of the whole process: the other task and its sender are in it, and
/// are the same for all.
fn sample(pieces: u64, took: Duration, cpu: Duration) -> Sample {
    let rate = pieces as f64 / took.as_secs_f64();
    let mut sample = Sample::of("pieces_per_s", "1/s", rate);
    let cpu = cpu.as_secs_f64() * 1e6 / pieces as f64;
    sample.put("cpu_per_piece", "us", cpu);
    sample
}

fn put(sample: &mut Sample, other_task: Latencies) {
    sample.put_latencies("other_task", other_task.from_send);
    sample.put_latencies("other_task_from_intended", other_task.from_intended);
}

/// What one core does of these pieces: on this thread, and nothing else.
pub fn alone(pieces: Pieces, span: Span) -> Sample {
    let schedule = Schedule::from_now(span);
    ways::alone(pieces, Stream::until(schedule.warm));
    let (start, cpu) = (Instant::now(), cpu_time::of_process());
    let handled = ways::alone(pieces, Stream::until(schedule.end));
    sample(handled, start.elapsed(), cpu_time::of_process() - cpu)
}

fn runtime(io: &str) -> Runtime {
    match io {
        "two workers" => io_runtime(2),
        _ => Builder::new_current_thread().enable_all().build().unwrap(),
    }
}

/// A stream of pieces is handled this way by a task of the I/O runtime.
pub fn run(io: &str, way: Way, pieces: Pieces, span: Span) -> Sample {
    let io = runtime(io);
    let cpu = lane(io.handle(), |lane| lane);
    let handle = cpu.handle();
    let sample = io.block_on(async move {
        let schedule = Schedule::from_now(span);
        let other = OtherTask::start(schedule);
        // Spawned, not blocked on: with workers, one of them computes.
        let task = tokio::spawn(async move {
            let warm_up = Stream::until(schedule.warm);
            way.handle_all(&handle, pieces, warm_up).await;
            let (start, cpu) = (Instant::now(), cpu_time::of_process());
            let measured = Stream::until(schedule.end);
            let handled = way.handle_all(&handle, pieces, measured).await;
            sample(handled, start.elapsed(), cpu_time::of_process() - cpu)
        });
        let mut sample = task.await.unwrap();
        put(&mut sample, other.latencies().await);
        sample
    });
    cpu.shutdown().wait();
    sample
}

/// The other task's latencies when there is no work.
pub fn idle(io: &str, span: Span) -> Sample {
    let latencies = runtime(io).block_on(async {
        let other = OtherTask::start(Schedule::from_now(span));
        other.latencies().await
    });
    let mut sample = Sample::default();
    put(&mut sample, latencies);
    sample
}
