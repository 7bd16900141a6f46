//! Tokio's tasks.

use std::future::Future;

use tokio::runtime::Builder;
use tokio::task::{JoinError, JoinHandle};

use crate::case::Figures;
use crate::contender::Flavor;
use crate::measure::{self, Spawn};
use crate::plan::Plan;

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

pub fn run(flavor: Flavor, threads: usize, plan: &Plan) -> Figures {
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
    let run = |plan: Plan| {
        let task = runtime.spawn(async move { measure::figures(&Tokio, &plan).await });
        runtime.block_on(task).unwrap()
    };
    run(plan.warm_up());
    run(*plan)
}
