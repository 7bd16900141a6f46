//! What one round lives in: fresh runtimes, a fresh client, fresh records, as in a process that has
//! just started.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Client;
use tokio::runtime::{Builder, Runtime};

use crate::connector::{BoxError, Connections};
use crate::contender::{Contender, Protocol};
use crate::cpu_side::{CpuSide, Spawner};
use crate::gate::{Busy, Gate, Span};
use crate::lane::Lane;
use crate::reactor::Reactors;

/// Threads on each side.
pub const THREADS: usize = 2;

pub struct World {
    pub io: Runtime,
    pub io_client: Client,
    pub cpu_client: Client,
    pub connections: Arc<Connections>,
    pub gate: Arc<Gate>,
    cpu: Option<CpuSide>,
}

impl World {
    pub fn new(contender: Contender, protocol: Protocol, busy: Busy) -> Result<Self, BoxError> {
        let io = runtime("io")?;
        let cpu = match contender {
            Contender::Alone => None,
            Contender::Twolane | Contender::SafetyNet => Some(CpuSide::twolane(io.handle())?),
            _ => Some(CpuSide::Tokio(runtime("cpu")?)),
        };
        let mut runtimes = vec![(Lane::Io, io.handle())];
        if let Some(handle) = cpu.as_ref().and_then(CpuSide::own_runtime) {
            runtimes.push((Lane::Cpu, handle));
        }
        let connections = Connections::new(Reactors::of(&runtimes)?);
        let (io_client, cpu_client) = contender.clients(protocol, &connections, io.handle())?;
        Ok(Self {
            io,
            io_client,
            cpu_client,
            connections,
            gate: Arc::new(Gate::new(busy)),
            cpu,
        })
    }

    pub fn cpu(&self) -> Option<Spawner> {
        self.cpu.as_ref().map(CpuSide::spawner)
    }

    /// Ends only when every thread of both sides is done, so that the next round starts in peace.
    /// Gives the times in which CPU threads were busy.
    pub fn end(self) -> Vec<Span> {
        self.gate.close();
        if let Some(cpu) = self.cpu {
            cpu.shutdown();
        }
        self.io.shutdown_timeout(Duration::from_secs(5));
        self.gate.take_spans()
    }
}

/// A runtime of two workers, named `io-0`, `io-1`, ...
fn runtime(name: &'static str) -> std::io::Result<Runtime> {
    let threads = AtomicUsize::new(0);
    Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name_fn(move || format!("{name}-{}", threads.fetch_add(1, Ordering::Relaxed)))
        .enable_all()
        .build()
}
