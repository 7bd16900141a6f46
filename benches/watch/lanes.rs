//! What a watched lane costs against one that is not.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tokio::runtime::{self, Handle, Runtime};
use twolane::watch::Watch;
use twolane::{Builder, CpuRuntime};
use twolane_benches::{Sample, cpu_time, io_runtime, lane};

/// As in `offload`.
const BATCH: u64 = 50_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    No,
    Yes,
}

impl Watched {
    pub const ALL: [(&str, Self); 2] = [("off", Self::No), ("on", Self::Yes)];

    fn set(self, lane: Builder) -> Builder {
        match self {
            Self::No => lane,
            Self::Yes => lane.watch_io(Watch::new()),
        }
    }

    pub fn lane(self, io: &Handle) -> CpuRuntime {
        lane(io, |lane| self.set(lane))
    }
}

type Open = fn() -> Runtime;

/// The runtime that is the I/O lane.
pub const IO: [(&str, Open); 2] = [
    ("two workers", || io_runtime(2)),
    ("one thread", || {
        let mut builder = runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    }),
];

/// From one poll to the next, on a lane that is in use but does next to nothing.
const TICK: Duration = Duration::from_millis(10);

/// The CPU time of the process, while the lane is in use and while it is quiet.
pub fn idle(io: Open, watched: Watched, measured: Duration) -> Sample {
    let io = io();
    let lane = watched.lane(io.handle());
    let mut sample = Sample::default();
    io.block_on(async {
        lane.spawn_cpu(|| ()).await.unwrap();
        let ticks = io.spawn(twolane::watch::watch(async {
            let mut ticks = tokio::time::interval(TICK);
            loop {
                ticks.tick().await;
            }
        }));
        tokio::time::sleep(5 * TICK).await;
        sample.put("in_use", "us/s", use_of_cores(measured).await);
        ticks.abort();
        tokio::time::sleep(5 * TICK).await;
        sample.put("quiet", "us/s", use_of_cores(measured).await);
    });
    sample
}

/// In µs of CPU time a second.
async fn use_of_cores(measured: Duration) -> f64 {
    let (from, cpu) = (Instant::now(), cpu_time::of_process());
    tokio::time::sleep(measured).await;
    let (cpu, took) = (cpu_time::of_process() - cpu, from.elapsed());
    cpu.as_secs_f64() / took.as_secs_f64() * 1e6
}

pub fn offload(watched: Watched, less: u64) -> Sample {
    let io = io_runtime(2);
    let lane = watched.lane(io.handle());
    let handle = lane.handle().clone();
    let jobs = BATCH / less;
    let task = io.spawn(async move {
        let mut sample = Sample::default();
        closures(&handle, jobs / 2).await;
        let cpu = cpu_time::of_process();
        put(&mut sample, "closure", closures(&handle, jobs).await, jobs);
        let cpu = cpu_time::of_process() - cpu;
        put(&mut sample, "closure_cpu", cpu, jobs);
        sample
    });
    io.block_on(task).unwrap()
}

fn put(sample: &mut Sample, metric: &'static str, took: Duration, each: u64) {
    sample.put(metric, "ns", took.as_nanos() as f64 / each as f64);
}

async fn closures(lane: &twolane::Handle, jobs: u64) -> Duration {
    let mut tasks = Vec::with_capacity(jobs as usize);
    let start = Instant::now();
    tasks.extend((0..jobs).map(|i| lane.spawn_cpu(move || black_box(i) + 1)));
    for (i, task) in (0..).zip(tasks) {
        assert_eq!(task.await.unwrap(), i + 1);
    }
    start.elapsed()
}
