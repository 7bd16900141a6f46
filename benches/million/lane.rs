//! Where the jobs of the Rust contenders go.

use std::future::Future;

use rayon::ThreadPool;
use tokio::runtime::{Handle as TokioHandle, Runtime};
use tokio::task::JoinHandle;
use twolane::{Backend, CpuRuntime, Task};

use twolane_benches::{cores, lane};

pub trait Lane {
    /// What the submitter keeps of a job.
    type Handle;
    /// Runs `job` on one of the threads that the jobs run on.
    fn run(&self, job: impl FnOnce() + Send + 'static);
    fn output(handle: Self::Handle) -> impl Future<Output = u64>;
}

pub trait Closures: Lane {
    fn closure(&self, job: impl FnOnce() -> u64 + Send + 'static) -> Self::Handle;
}

pub trait Futures: Lane {
    fn future(&self, job: impl Future<Output = u64> + Send + 'static) -> Self::Handle;
}

pub struct Twolane(CpuRuntime);

impl Twolane {
    pub fn open(io: &Runtime, backend: Backend) -> Self {
        Self(lane(io.handle(), |lane| {
            lane.backend(backend).worker_threads(cores())
        }))
    }
}

impl Lane for Twolane {
    type Handle = Task<u64>;
    fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.0.spawn_cpu(job).detach();
    }
    async fn output(handle: Task<u64>) -> u64 {
        handle.await.unwrap()
    }
}

impl Closures for Twolane {
    fn closure(&self, job: impl FnOnce() -> u64 + Send + 'static) -> Task<u64> {
        self.0.spawn_cpu(job)
    }
}

impl Futures for Twolane {
    fn future(&self, job: impl Future<Output = u64> + Send + 'static) -> Task<u64> {
        self.0.spawn(job)
    }
}

/// `tokio::spawn`, from outside the runtime.
pub struct Tokio(pub TokioHandle);

impl Lane for Tokio {
    type Handle = JoinHandle<u64>;
    fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.0.spawn(async move { job() });
    }
    async fn output(handle: JoinHandle<u64>) -> u64 {
        handle.await.unwrap()
    }
}

impl Closures for Tokio {
    fn closure(&self, job: impl FnOnce() -> u64 + Send + 'static) -> JoinHandle<u64> {
        self.0.spawn(async move { job() })
    }
}

impl Futures for Tokio {
    fn future(&self, job: impl Future<Output = u64> + Send + 'static) -> JoinHandle<u64> {
        self.0.spawn(job)
    }
}

pub struct SpawnBlocking(pub TokioHandle);

impl Lane for SpawnBlocking {
    type Handle = JoinHandle<u64>;
    fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.0.spawn_blocking(job);
    }
    async fn output(handle: JoinHandle<u64>) -> u64 {
        handle.await.unwrap()
    }
}

impl Closures for SpawnBlocking {
    fn closure(&self, job: impl FnOnce() -> u64 + Send + 'static) -> JoinHandle<u64> {
        self.0.spawn_blocking(job)
    }
}

/// A rayon pool, and async-task for what it lacks: an output to await.
pub struct AsyncTask(&'static ThreadPool);

impl AsyncTask {
    pub fn open() -> Self {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(cores()).build();
        // So that a job holds a pointer to it, and no count.
        Self(Box::leak(Box::new(pool.unwrap())))
    }
}

impl Lane for AsyncTask {
    type Handle = async_task::Task<u64>;
    fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.0.spawn(job);
    }
    async fn output(handle: async_task::Task<u64>) -> u64 {
        handle.await
    }
}

impl Closures for AsyncTask {
    fn closure(&self, job: impl FnOnce() -> u64 + Send + 'static) -> async_task::Task<u64> {
        let pool = self.0;
        let schedule = move |job: async_task::Runnable| {
            pool.spawn(move || {
                job.run();
            });
        };
        let (job, task) = async_task::spawn(async move { job() }, schedule);
        job.schedule();
        task
    }
}
