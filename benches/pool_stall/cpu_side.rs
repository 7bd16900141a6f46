//! The CPU side of a contender: where its jobs run.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::{Handle as Tokio, Runtime};
use twolane::{CpuRuntime, Handle, Task};

use crate::connector::BoxError;
use crate::world::THREADS;

pub enum CpuSide {
    /// A second Tokio runtime, as published.
    Tokio(Runtime),
    /// Contenders (f) and (g).
    Twolane(CpuRuntime, Tasks),
}

type Tasks = Arc<Mutex<Vec<Task<()>>>>;

#[derive(Clone)]
pub enum Spawner {
    Tokio(Tokio),
    Twolane(Handle, Tasks),
}

impl CpuSide {
    pub fn twolane(io: &Tokio) -> Result<Self, BoxError> {
        let cpu = CpuRuntime::builder()
            .worker_threads(THREADS)
            .thread_name("cpu")
            .io_handle(io.clone())
            .build()?;
        Ok(Self::Twolane(cpu, Tasks::default()))
    }

    pub fn spawner(&self) -> Spawner {
        match self {
            Self::Tokio(runtime) => Spawner::Tokio(runtime.handle().clone()),
            Self::Twolane(cpu, tasks) => Spawner::Twolane(cpu.handle().clone(), tasks.clone()),
        }
    }

    /// The Tokio runtime that jobs of this side live in, if it is not the I/O side's.
    pub fn own_runtime(&self) -> Option<&Tokio> {
        match self {
            Self::Tokio(runtime) => Some(runtime.handle()),
            Self::Twolane(..) => None,
        }
    }

    /// Drops what is not done and waits for the threads.
    pub fn shutdown(self) {
        match self {
            Self::Tokio(runtime) => runtime.shutdown_timeout(Duration::from_secs(5)),
            Self::Twolane(cpu, tasks) => {
                // Dropping a task cancels its job.
                tasks.lock().unwrap().clear();
                cpu.shutdown().wait();
            }
        }
    }
}

impl Spawner {
    pub fn spawn(&self, job: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Tokio(handle) => drop(handle.spawn(job)),
            Self::Twolane(handle, tasks) => tasks.lock().unwrap().push(handle.spawn(job)),
        }
    }
}
