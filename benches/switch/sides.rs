//! twolane and Tokio, opened for one measurement.

use std::future::Future;
use std::hint::black_box;
use std::time::{Duration, Instant};

use tokio::task::{JoinError, JoinHandle};
use twolane::{Backend, CpuRuntime, Handle, Task};

use crate::measure::{self, Spawn};
use crate::{Flavor, Side};

/// How long `n` of a case take.
pub fn time(side: Side, threads: usize, case: &'static str, n: u64) -> Duration {
    match side {
        Side::Twolane(backend) => in_twolane(backend, threads, case, n),
        Side::Tokio(flavor) => in_tokio(flavor, threads, case, n),
        Side::Goroutines => unreachable!("goroutines have a process of their own"),
    }
}

/// Each path is gone once, not as often, before the clock starts.
fn warm_up(n: u64) -> u64 {
    n / 10 + 1
}

struct Tokio;

impl Spawn for Tokio {
    type Error = JoinError;
    type Task<T: Send + 'static> = JoinHandle<T>;

    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tokio::spawn(future)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }
}

fn in_tokio(flavor: Flavor, threads: usize, case: &'static str, n: u64) -> Duration {
    use tokio::runtime::Builder;
    let mut builder = match flavor {
        Flavor::CurrentThread => Builder::new_current_thread(),
        Flavor::MultiThread | Flavor::EnableAll => Builder::new_multi_thread(),
    };
    if flavor != Flavor::CurrentThread {
        builder.worker_threads(threads);
    }
    if flavor == Flavor::EnableAll {
        builder.enable_all();
    }
    let runtime = builder.build().unwrap();
    // In a task: what `block_on` is given itself is not on a worker.
    let task = runtime.spawn(async move {
        measure::time(&Tokio, case, warm_up(n)).await;
        measure::time(&Tokio, case, n).await
    });
    runtime.block_on(task).unwrap()
}

impl Spawn for Handle {
    type Error = twolane::JoinError;
    type Task<T: Send + 'static> = Task<T>;

    fn spawn<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Handle::spawn(self, future)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        twolane::yield_now()
    }
}

fn in_twolane(backend: Backend, threads: usize, case: &'static str, n: u64) -> Duration {
    // There because a lane has one; nothing here goes to it.
    let io = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let cpu = CpuRuntime::builder()
        .backend(backend)
        .worker_threads(threads)
        .without_nice()
        .io_handle(io.handle().clone())
        .build()
        .unwrap();
    let handle = cpu.handle();
    let job = cpu.spawn(async move {
        let handle = &handle;
        let time = async |n| match case {
            "spawn_cpu" => spawn_cpu(handle, n).await,
            "yield_if_due" => yield_if_due(n).await,
            case => measure::time(handle, case, n).await,
        };
        time(warm_up(n)).await;
        time(n).await
    });
    let took = job.wait().unwrap();
    cpu.shutdown().wait();
    took
}

async fn spawn_cpu(handle: &Handle, n: u64) -> Duration {
    let begun = Instant::now();
    for _ in 0..n {
        assert_eq!(handle.spawn_cpu(|| black_box(1)).await.unwrap(), 1);
    }
    begun.elapsed()
}

/// In pieces that are shorter than a slice, which begins with the piece, so that none
/// of the calls is due; each less the same loop without the call.
async fn yield_if_due(calls: u64) -> Duration {
    const PIECE: u64 = 500_000;
    let mut net = 0;
    let mut left = calls;
    while left > 0 {
        let calls = left.min(PIECE);
        left -= calls;
        // A slice begins.
        twolane::yield_now().await;
        let begun = Instant::now();
        for n in 0..calls {
            black_box(n);
            twolane::yield_if_due().await;
        }
        let raw = begun.elapsed();
        let begun = Instant::now();
        for n in 0..calls {
            black_box(n);
        }
        net += raw.as_nanos() as i128 - begun.elapsed().as_nanos() as i128;
    }
    // criterion can't do with nothing, which a few calls may well take.
    Duration::from_nanos(u64::try_from(net.max(1)).unwrap())
}
