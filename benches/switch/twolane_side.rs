//! twolane: what all have, `spawn_cpu`, and `yield_if_due`.

use std::future::Future;
use std::hint::black_box;
use std::time::Instant;

use twolane::{Backend, CpuRuntime, Handle, JoinError, Task};

use crate::case::{Case, Figures};
use crate::measure::{self, Spawn, each};
use crate::plan::Plan;
use crate::support::median;

impl Spawn for Handle {
    type Error = JoinError;
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

pub fn run(backend: Backend, threads: usize, plan: &Plan) -> Figures {
    // There because a lane has one; nothing here goes to it.
    let io = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let cpu = CpuRuntime::builder()
        .backend(backend)
        .threads(threads)
        .without_nice()
        .io_handle(io.handle().clone())
        .build()
        .unwrap();
    let handle = cpu.handle();
    let run = |plan: Plan| {
        let inside = cpu.handle();
        let job = async move {
            let mut figures = measure::figures(&inside, &plan).await;
            figures.insert(Case::SpawnCpu, spawn_cpu(&inside, plan.starts).await);
            figures.extend(yield_if_due(plan.calls, plan.pieces).await);
            figures
        };
        handle.spawn(job).wait().unwrap()
    };
    run(plan.warm_up());
    let figures = run(*plan);
    cpu.shutdown().wait();
    figures
}

async fn spawn_cpu(handle: &Handle, n: u32) -> f64 {
    let begun = Instant::now();
    for _ in 0..n {
        assert_eq!(handle.spawn_cpu(|| black_box(1)).await.unwrap(), 1);
    }
    each(begun, n)
}

/// Raw, the loop's own, and the difference: medians of the pieces, so that one
/// in which the thread lost its core has no say.
async fn yield_if_due(calls: u32, pieces: usize) -> Figures {
    let mut figures: [Vec<f64>; 3] = Default::default();
    for _ in 0..pieces {
        // A slice begins.
        twolane::yield_now().await;
        let raw = with_call(calls).await;
        let empty = without_call(calls).await;
        for (figures, figure) in figures.iter_mut().zip([raw, empty, raw - empty]) {
            figures.push(figure);
        }
    }
    let cases = [Case::YieldIfDueRaw, Case::EmptyLoop, Case::YieldIfDue];
    cases.into_iter().zip(figures.map(median)).collect()
}

async fn with_call(calls: u32) -> f64 {
    let begun = Instant::now();
    for n in 0..calls {
        black_box(n);
        twolane::yield_if_due().await;
    }
    each(begun, calls)
}

async fn without_call(calls: u32) -> f64 {
    let begun = Instant::now();
    for n in 0..calls {
        black_box(n);
    }
    each(begun, calls)
}
