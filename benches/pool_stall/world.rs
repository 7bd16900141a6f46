//! What one round lives in: fresh runtimes and a fresh client, as in a process that has just
//! started.

use std::future::Future;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use reqwest::Client;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use twolane::CpuRuntime;
use twolane_benches::{BoxError, io_runtime, lane};

use crate::contender::{Contender, Protocol};

/// On each side, and of the server.
pub const THREADS: usize = 2;
/// No request of any contender has any business being this late.
pub const GIVE_UP: Duration = Duration::from_secs(30);

/// How a CPU job keeps its thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// `std::thread::sleep`, as published: the thread is gone, the core is free.
    Sleep,
    /// Computing: the core is taken too.
    Burn,
}

/// The CPU jobs' work.
pub struct Work {
    busy: Busy,
    /// Set at the end of a round, for what is left can't change what the io side saw: jobs that
    /// compute end then, those that sleep do not.
    is_over: AtomicBool,
}

pub enum CpuSide {
    Absent,
    /// A second Tokio runtime, as published.
    Tokio(Runtime),
    Twolane(CpuRuntime),
}

/// A request of the io side: when it was submitted, and when it had ended.
pub type Get = JoinHandle<reqwest::Result<(Instant, Instant)>>;

pub struct World {
    pub cpu: CpuSide,
    pub cpu_client: Client,
    pub work: Arc<Work>,
    io: Runtime,
    io_client: Client,
}

impl Busy {
    pub const ALL: [Self; 2] = [Self::Sleep, Self::Burn];

    pub fn key(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Burn => "burn",
        }
    }
}

impl Work {
    /// Keeps the calling thread busy. The end of the round cuts computing short.
    pub fn keep_busy(&self, time: Duration) {
        if self.busy == Busy::Sleep {
            return thread::sleep(time);
        }
        let (start, mut x) = (Instant::now(), 1_u64);
        while start.elapsed() < time && !self.is_over.load(Relaxed) {
            for _ in 0..20_000 {
                x = black_box(x.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7));
            }
        }
    }
}

impl CpuSide {
    pub fn spawn(&self, job: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Absent => {}
            Self::Tokio(runtime) => drop(runtime.spawn(job)),
            Self::Twolane(cpu) => cpu.handle().spawn(job).detach(),
        }
    }
}

impl World {
    pub fn new(contender: Contender, protocol: Protocol, busy: Busy) -> Result<Self, BoxError> {
        let io = io_runtime(THREADS);
        let cpu = match contender {
            Contender::Alone => CpuSide::Absent,
            Contender::Twolane | Contender::SafetyNet => {
                CpuSide::Twolane(lane(io.handle(), |lane| lane.worker_threads(THREADS)))
            }
            _ => CpuSide::Tokio(io_runtime(THREADS)),
        };
        let io_client = contender.client(protocol, io.handle())?;
        let cpu_client = match contender {
            Contender::TwoClients => contender.client(protocol, io.handle())?,
            _ => io_client.clone(),
        };
        let is_over = AtomicBool::new(false);
        Ok(Self {
            cpu,
            cpu_client,
            work: Arc::new(Work { busy, is_over }),
            io,
            io_client,
        })
    }

    /// Submits a request of the io side, body and all.
    pub fn get(&self, url: String) -> Get {
        let request = self.io_client.get(url);
        let submitted = Instant::now();
        self.io.spawn(async move {
            let response = request.send().await?.error_for_status()?;
            response.bytes().await?;
            Ok((submitted, Instant::now()))
        })
    }

    /// Waits for it.
    pub fn end_of(&self, get: Get) -> Result<(Instant, Instant), BoxError> {
        let end = async { timeout(GIVE_UP, get).await };
        Ok(self.io.block_on(end)???)
    }
}

/// Returns only when all threads of both sides have ended, so that the next round starts in peace:
/// the drop of a Tokio runtime waits for its threads.
impl Drop for World {
    fn drop(&mut self) {
        self.work.is_over.store(true, Relaxed);
        if let CpuSide::Twolane(cpu) = &self.cpu {
            cpu.shutdown().wait();
        }
    }
}
