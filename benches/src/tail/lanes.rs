//! The places where CPU jobs can run: each way that people put them there.
//!
//! A lane is made fresh for a slice, and whatever it owns ends when it is dropped.

use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use twolane::Priority;

use super::job::Job;

/// twolane's default.
pub const TICK: Duration = Duration::from_millis(1);

/// Whether this process ticks from now on. It would do so for all contenders, once one of them has
/// had a lane.
pub fn tick(yes: bool) {
    giveway::tick_each(yes.then_some(TICK)).expect("a period within its range");
}

/// Where jobs go, and how many of them are under way at any time.
pub struct Lane {
    pub in_flight: usize,
    /// How many threads compute.
    pub threads: usize,
    pub submit: Box<dyn Fn(Job) + Send>,
}

impl Lane {
    fn new(in_flight: usize, threads: usize, submit: impl Fn(Job) + Send + 'static) -> Self {
        Self {
            in_flight,
            threads,
            submit: Box::new(submit),
        }
    }

    /// Tasks of the I/O runtime itself.
    pub fn same_runtime(io: &Handle, in_flight: usize) -> Self {
        let (io, threads) = (io.clone(), io.metrics().num_workers());
        Self::new(in_flight, threads, move |job| {
            io.spawn(async { job.run() });
        })
    }

    /// The I/O runtime's blocking pool, which starts a thread for each job in flight (up to 512).
    pub fn spawn_blocking(io: &Handle, in_flight: usize) -> Self {
        let io = io.clone();
        Self::new(in_flight, in_flight, move |job| {
            io.spawn_blocking(|| job.run());
        })
    }

    /// A second Tokio runtime, whose threads have that nice value.
    pub fn second_runtime(workers: usize, in_flight: usize, nice: i32) -> Self {
        let second = Builder::new_multi_thread()
            .worker_threads(workers)
            .thread_name("second")
            .on_thread_start(move || {
                rustix::process::setpriority_process(None, nice).expect("a nice value goes up");
            })
            .build()
            .unwrap();
        Self::new(in_flight, workers, move |job| {
            second.spawn(async { job.run() });
        })
    }

    /// A rayon pool.
    pub fn rayon(threads: usize, in_flight: usize) -> Self {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        Self::new(in_flight, threads, move |job| pool.spawn(|| job.run()))
    }

    /// A lane that its owner ends.
    pub fn on(cpu: twolane::Handle, in_flight: usize) -> Self {
        Self::new(in_flight, cpu.worker_threads(), move |job| {
            cpu.spawn_cpu(|| job.run()).detach()
        })
    }

    /// twolane, with these settings.
    pub fn twolane(
        io: &Handle,
        in_flight: usize,
        set: impl FnOnce(twolane::Builder) -> twolane::Builder,
    ) -> Self {
        let cpu = crate::lane(io, set);
        let threads = cpu.handle().worker_threads();
        Self::new(in_flight, threads, move |job| {
            cpu.spawn_cpu(|| job.run()).detach()
        })
    }

    /// twolane. With each job come eight short ones of that priority, of a hundredth of its work.
    pub fn twolane_and_short_jobs(io: &Handle, in_flight: usize, of_short: Priority) -> Self {
        let cpu = crate::lane(io, |lane| lane);
        let short = cpu.handle().with_priority(of_short).with_name("short");
        Self::new(in_flight, short.worker_threads(), move |job| {
            let work = job.work().times(0.01);
            (0..8).for_each(|_| short.spawn_cpu(move || work.run()).detach());
            cpu.spawn_cpu(|| job.run()).detach();
        })
    }
}
