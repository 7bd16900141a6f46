//! The two lanes, and one slice on them.

use std::fmt;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use twolane::CpuRuntime;

use crate::pieces::{Pieces, Stream};
use crate::plan::Span;
use crate::support::cpu_time;
use crate::tail::client::Latencies;
use crate::wakeups::{OtherTask, Schedule};
use crate::ways::{Way, alone as handle_alone};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IoRuntime {
    TwoWorkers,
    CurrentThread,
}

pub struct Slice {
    pub pieces_per_s: f64,
    /// Of the whole process: the other task and its sender are in it, and are
    /// the same for all.
    pub cpu_s_per_piece: f64,
    /// Of the other task.
    pub latencies: Latencies,
}

impl Slice {
    fn new(pieces: u64, took: Duration, cpu: Duration, latencies: Latencies) -> Self {
        Self {
            pieces_per_s: pieces as f64 / took.as_secs_f64(),
            cpu_s_per_piece: cpu.as_secs_f64() / pieces as f64,
            latencies,
        }
    }
}

/// What one core does of these pieces: on this thread, and nothing else.
pub fn alone(pieces: Pieces, span: Span) -> Slice {
    let schedule = Schedule::from_now(span);
    handle_alone(pieces, Stream::until(schedule.warm));
    let (start, cpu) = (Instant::now(), cpu_time::of_process());
    let handled = handle_alone(pieces, Stream::until(schedule.end));
    let (took, cpu) = (start.elapsed(), cpu_time::of_process() - cpu);
    Slice::new(handled, took, cpu, Latencies::none())
}

pub struct Lanes {
    io: Runtime,
    cpu: CpuRuntime,
}

impl Lanes {
    pub fn open(io: IoRuntime) -> Self {
        let io = match io {
            IoRuntime::TwoWorkers => Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build(),
            IoRuntime::CurrentThread => Builder::new_current_thread().enable_all().build(),
        }
        .unwrap();
        let cpu = CpuRuntime::builder()
            .io_handle(io.handle().clone())
            .build()
            .unwrap();
        Self { io, cpu }
    }

    /// A stream of pieces is handled this way by a task of the I/O runtime.
    pub fn run(&self, way: Way, pieces: Pieces, span: Span) -> Slice {
        let handle = self.cpu.handle();
        self.io.block_on(async move {
            let schedule = Schedule::from_now(span);
            let other = OtherTask::start(schedule);
            // Spawned, not blocked on: with workers, one of them computes.
            let (handled, took, cpu) = tokio::spawn(async move {
                let warm_up = Stream::until(schedule.warm);
                way.handle_all(&handle, pieces, warm_up).await;
                let (start, cpu) = (Instant::now(), cpu_time::of_process());
                let measured = Stream::until(schedule.end);
                let handled = way.handle_all(&handle, pieces, measured).await;
                (handled, start.elapsed(), cpu_time::of_process() - cpu)
            })
            .await
            .unwrap();
            Slice::new(handled, took, cpu, other.latencies().await)
        })
    }

    /// The other task's latencies when there is no work.
    pub fn idle(&self, span: Span) -> Latencies {
        self.io.block_on(async {
            let other = OtherTask::start(Schedule::from_now(span));
            other.latencies().await
        })
    }

    /// Waits until its threads are gone.
    pub fn close(self) {
        self.cpu.shutdown().wait();
    }
}

impl IoRuntime {
    pub const ALL: [Self; 2] = [Self::TwoWorkers, Self::CurrentThread];
}

impl fmt::Display for IoRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::TwoWorkers => "two workers",
            Self::CurrentThread => "current thread",
        })
    }
}
