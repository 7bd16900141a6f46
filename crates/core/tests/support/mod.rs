//! What the tests share: a time limit for each, and lanes to test on.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

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

pub use limit::{limit_this_thread, thread_name, time_limit};
use twolane_core::{Builder, CpuRuntime, Handle, Priority, Task};

pub struct Lanes {
    pub cpu: CpuRuntime,
    pub io: tokio::runtime::Runtime,
}

impl Lanes {
    /// Also the handle of the CPU lane, by which most tests call it.
    pub fn and_handle(self) -> (Handle, Self) {
        (self.cpu.handle().clone(), self)
    }
}

/// An I/O runtime of two workers named `io`, and a CPU lane on it. The test has its time limit by that.
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
        handle.spawn_cpu(nothing).wait().unwrap();
    }
}

/// What this process has of it, in kB, where `/proc` tells: `VmSize`, `VmRSS`.
pub fn memory(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix(key));
    let kb = value.unwrap().split_whitespace().nth(1);
    kb.unwrap().parse().unwrap()
}

/// A CPU lane with threads named `cpu-N`, each priority with its own jobs: a test that holds the
/// threads of `Normal` knows which job runs where. (`tests/lane/short_first.rs`, the storm and the
/// model have lanes as they come.)
pub fn cpu_lane(threads: usize, io: &tokio::runtime::Handle) -> CpuRuntime {
    settings(threads, io).build().unwrap()
}

fn settings(threads: usize, io: &tokio::runtime::Handle) -> Builder {
    limit_this_thread();
    CpuRuntime::builder()
        .worker_threads(threads)
        .thread_name("cpu")
        .io_handle(io.clone())
        .short_jobs_first(false)
}

/// A job. It is one type for all tests: what each type costs the compiler is the whole way of a job.
pub fn nothing() {}

/// The same for a job that returns this.
pub fn gives<T: Send>(output: T) -> impl FnOnce() -> T + Send {
    move || output
}

/// A closure job that has started and stays until it is let go.
pub struct Stuck<T> {
    pub task: Task<T>,
    let_go: mpsc::Sender<T>,
    /// The thread that it is on.
    pub on: String,
}

impl<T: Send + 'static> Stuck<T> {
    pub fn start(cpu: &Handle) -> Self {
        let (let_go, wait) = mpsc::channel();
        let (started, running) = mpsc::channel();
        let task = cpu.spawn_cpu(move || {
            started.send(thread_name()).unwrap();
            wait.recv().unwrap()
        });
        let on = running.recv().unwrap();
        Self { task, let_go, on }
    }

    /// Its task, and what lets it end.
    pub fn split(self) -> (Task<T>, mpsc::Sender<T>) {
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
    _queued: Vec<Task<()>>,
}

impl Full {
    pub fn of(cpu: &Handle) -> Self {
        let held = (0..cpu.worker_threads()).map(|_| Stuck::start(cpu));
        let held = held.collect();
        let mut queued = Vec::new();
        while cpu.try_reserve().is_ok() {
            queued.push(cpu.spawn_cpu(nothing));
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
pub fn suspended<T: Send + 'static>(cpu: &Handle, held: T) -> Task<()> {
    let (lasts, polled) = lasts(held);
    let task = cpu.spawn(lasts);
    polled.recv().unwrap();
    task
}

/// A job that holds this, computes until it is let go, and then waits for ever.
pub fn stuck_in_a_poll<T: Send + 'static>(cpu: &Handle, held: T) -> (Task<()>, mpsc::Sender<()>) {
    let (polls, polled) = mpsc::channel();
    let (let_go, wait) = mpsc::channel::<()>();
    let task = cpu.spawn(async move {
        let _held = held;
        polls.send(()).unwrap();
        let _ = wait.recv();
        std::future::pending().await
    });
    polled.recv().unwrap();
    (task, let_go)
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
