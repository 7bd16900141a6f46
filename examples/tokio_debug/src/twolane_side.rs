//! Contenders (f) and (g): twolane as the CPU side.

use std::sync::{Arc, Mutex};

use reqwest::{RequestBuilder, Response};
use tokio::runtime::Handle as IoHandle;
use twolane::{Backend, CpuRuntime, Handle, RequestBuilderExt, Task};

use crate::connector::BoxError;
use crate::cpu_side::Job;

pub struct TwolaneSide {
    cpu: CpuRuntime,
    tasks: Tasks,
}

type Tasks = Arc<Mutex<Vec<Task<()>>>>;

#[derive(Clone)]
pub struct TwolaneSpawner {
    handle: Handle,
    tasks: Tasks,
}

impl TwolaneSide {
    pub fn new(threads: usize, io: &IoHandle) -> Result<Self, BoxError> {
        let cpu = CpuRuntime::builder()
            .worker_threads(threads)
            .thread_name("cpu")
            .io_handle(io.clone())
            .backend(Backend::Rayon)
            .build()?;
        Ok(Self {
            cpu,
            tasks: Tasks::default(),
        })
    }

    pub fn spawner(&self) -> TwolaneSpawner {
        TwolaneSpawner {
            handle: self.cpu.handle(),
            tasks: Arc::clone(&self.tasks),
        }
    }

    pub fn shutdown(self) {
        // Dropping a task cancels its job.
        self.tasks.lock().unwrap().clear();
        self.cpu.shutdown().wait();
    }
}

impl TwolaneSpawner {
    pub fn spawn(&self, job: Job) {
        let task = self.handle.spawn(job);
        self.tasks.lock().unwrap().push(task);
    }
}

/// The request as a task of the I/O lane, its body back through the bounded bridge.
pub async fn send_io(request: RequestBuilder) -> Result<Response, BoxError> {
    Ok(request.send_io().await?)
}
