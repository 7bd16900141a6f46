//! Where jobs run, beside an I/O runtime of two workers.

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::runtime::{Builder, Handle, Runtime};
use twolane::CpuRuntime;

use crate::BoxError;

pub const CPU_THREADS: usize = 2;
const IO_THREADS: usize = 2;
/// For jobs that still run when a trial is over.
const PATIENCE: Duration = Duration::from_secs(5);

/// What runs the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    Twolane,
    /// A second Tokio runtime with all its drivers. A job uses the client plainly.
    TwoRuntimes,
    /// The same, with each request of a job in a task of the I/O runtime, by hand.
    ByHand,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Twolane => "twolane",
            Self::TwoRuntimes => "two runtimes",
            Self::ByHand => "two, by hand",
        })
    }
}

/// The I/O runtime, and what runs the jobs.
pub struct Lanes {
    pub io: Runtime,
    owner: Owner,
}

enum Owner {
    Twolane(CpuRuntime),
    Plain(Runtime),
}

impl Lanes {
    pub fn start(side: Side) -> Result<Self, BoxError> {
        let io = runtime("io", IO_THREADS)?;
        let owner = match side {
            Side::Twolane => {
                let builder = CpuRuntime::builder()
                    .worker_threads(CPU_THREADS)
                    .thread_name("cpu")
                    .io_handle(io.handle().clone());
                Owner::Twolane(builder.build()?)
            }
            Side::TwoRuntimes | Side::ByHand => Owner::Plain(runtime("cpu", CPU_THREADS)?),
        };
        Ok(Self { io, owner })
    }

    pub fn cpu(&self) -> Cpu {
        match &self.owner {
            Owner::Twolane(cpu) => Cpu::Twolane(cpu.handle().clone()),
            Owner::Plain(cpu) => Cpu::Plain {
                cpu: cpu.handle().clone(),
                io: self.io.handle().clone(),
            },
        }
    }

    /// Ends both, the jobs' side first.
    pub fn end(self) {
        match self.owner {
            Owner::Twolane(cpu) => {
                self.io.block_on(cpu.shutdown_timeout(PATIENCE));
            }
            Owner::Plain(cpu) => cpu.shutdown_timeout(PATIENCE),
        }
        self.io.shutdown_timeout(PATIENCE);
    }
}

fn runtime(name: &str, threads: usize) -> std::io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name(name)
        .enable_all()
        .build()
}

/// What submits jobs.
#[derive(Clone)]
pub enum Cpu {
    Twolane(twolane::Handle),
    Plain { cpu: Handle, io: Handle },
}

/// How a job ended that returned nothing.
#[derive(Debug)]
pub enum Lost {
    Panicked,
    /// Cancelled, shut down.
    Other,
}

impl Cpu {
    /// Runs a job.
    pub fn spawn<F>(&self, job: F) -> BoxFuture<'static, Result<F::Output, Lost>>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        match self {
            Self::Twolane(cpu) => {
                let task = cpu.spawn(job);
                Box::pin(async {
                    task.await.map_err(|error| match error.is_panic() {
                        true => Lost::Panicked,
                        false => Lost::Other,
                    })
                })
            }
            Self::Plain { cpu, .. } => {
                let task = cpu.spawn(job);
                Box::pin(async {
                    task.await.map_err(|error| match error.is_panic() {
                        true => Lost::Panicked,
                        false => Lost::Other,
                    })
                })
            }
        }
    }

    /// The handle that adapters want.
    ///
    /// # Panics
    /// On plain runtimes.
    pub fn twolane(&self) -> &twolane::Handle {
        match self {
            Self::Twolane(cpu) => cpu,
            Self::Plain { .. } => panic!("this way of writing it is twolane's"),
        }
    }

    /// The I/O runtime, for what is written by hand.
    ///
    /// # Panics
    /// On twolane's lanes.
    pub fn io(&self) -> &Handle {
        match self {
            Self::Twolane(_) => panic!("this way of writing it is for plain runtimes"),
            Self::Plain { io, .. } => io,
        }
    }
}
