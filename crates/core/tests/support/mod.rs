//! What the tests share: a time limit for each, and lanes to test on.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

pub mod at_end;
pub mod busy;
pub mod cgroup;
pub mod child;
pub mod few_threads;
pub mod limit;
pub mod must_run;
pub mod turns;
pub mod wait;

use std::sync::mpsc;

pub use limit::{thread_name, time_limit};
use twolane_core::{Builder, CpuRuntime, Priority};

pub struct Lanes {
    pub cpu: CpuRuntime,
    pub io: tokio::runtime::Runtime,
}

/// An I/O runtime of two workers named `io`, and a CPU lane on it.
pub fn lanes(threads: usize) -> Lanes {
    lanes_with(threads, |builder| builder)
}

/// The same, with settings of one's own.
pub fn lanes_with(threads: usize, set: impl FnOnce(Builder) -> Builder) -> Lanes {
    let io = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("io")
        .enable_all()
        .build()
        .unwrap();
    let cpu = set(settings(threads, io.handle())).build().unwrap();
    Lanes { cpu, io }
}

/// Has a job on each priority, whose threads start for it.
pub fn use_all(cpu: &CpuRuntime) {
    for priority in [Priority::High, Priority::Normal, Priority::Low] {
        let handle = cpu.handle().with_priority(priority);
        handle.spawn_cpu(|| ()).wait().unwrap();
    }
}

/// A CPU lane with threads named `cpu-N`, each priority with its own jobs: a test that holds the
/// threads of `Normal` knows which job runs where. (`tests/lane/short_first.rs`, the storm and the
/// model have lanes as they come.)
pub fn cpu_lane(threads: usize, io: &tokio::runtime::Handle) -> CpuRuntime {
    settings(threads, io).build().unwrap()
}

fn settings(threads: usize, io: &tokio::runtime::Handle) -> Builder {
    CpuRuntime::builder()
        .worker_threads(threads)
        .thread_name("cpu")
        .io_handle(io.clone())
        .short_jobs_first(false)
}

/// A closure job that has started and stays until it is let go.
pub struct Stuck<T> {
    pub task: twolane_core::Task<T>,
    let_go: mpsc::Sender<T>,
}

impl<T: Send + 'static> Stuck<T> {
    pub fn start(cpu: &twolane_core::Handle) -> Self {
        let (let_go, wait) = mpsc::channel();
        let (started, running) = mpsc::channel();
        let task = cpu.spawn_cpu(move || {
            started.send(()).unwrap();
            wait.recv().unwrap()
        });
        running.recv().unwrap();
        Self { task, let_go }
    }

    /// Its task, and what lets it end.
    pub fn split(self) -> (twolane_core::Task<T>, mpsc::Sender<T>) {
        (self.task, self.let_go)
    }
}

impl Stuck<()> {
    /// Lets it end, and waits for that.
    pub fn end(self) {
        self.let_go.send(()).unwrap();
        self.task.wait().unwrap();
    }
}

/// A priority with a limit in time that is full: its threads are held, and jobs queue up to the limit.
pub struct Full {
    held: Vec<Stuck<()>>,
    _queued: Vec<twolane_core::Task<()>>,
}

impl Full {
    pub fn of(cpu: &twolane_core::Handle) -> Self {
        let held = (0..cpu.worker_threads()).map(|_| Stuck::start(cpu));
        let held = held.collect();
        let mut queued = Vec::new();
        while cpu.try_reserve().is_ok() {
            queued.push(cpu.spawn_cpu(|| ()));
        }
        Self {
            held,
            _queued: queued,
        }
    }

    /// Lets all of it end, and waits for that.
    pub async fn end(self) {
        for held in self.held {
            held.let_go.send(()).unwrap();
            held.task.await.unwrap();
        }
    }
}

/// Holds this, and waits for ever. By the receiver it says that it is polled.
pub fn lasts<T: Send + 'static>(
    held: T,
) -> (impl Future<Output = ()> + Send + use<T>, mpsc::Receiver<()>) {
    let (polls, polled) = mpsc::channel();
    let lasts = async move {
        let _held = held;
        let _ = polls.send(());
        std::future::pending().await
    };
    (lasts, polled)
}

/// A job that holds this and waits for ever, in its first poll or after that.
pub fn suspended<T: Send + 'static>(cpu: &twolane_core::Handle, held: T) -> twolane_core::Task<()> {
    let (lasts, polled) = lasts(held);
    let task = cpu.spawn(lasts);
    polled.recv().unwrap();
    task
}

/// Tells on which thread it was dropped.
pub struct Dropped(pub mpsc::Sender<String>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(thread_name());
    }
}

/// Panics when it is dropped, once.
pub struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("the destructor panics");
        }
    }
}
