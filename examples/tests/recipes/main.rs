//! Each recipe does what it says, and so does the example `axum`. (`paused_clock` is a test itself.)

#![allow(dead_code, reason = "the recipes' `main`s are not called")]

#[path = "../../axum.rs"]
mod axum_example;
#[path = "../../recipes/batch_on_low.rs"]
mod batch_on_low;
#[path = "../../recipes/cancel_flag.rs"]
mod cancel_flag;
#[path = "../../recipes/dedicated_executor.rs"]
mod dedicated_executor;
#[path = "../../recipes/from_spawn_blocking.rs"]
mod from_spawn_blocking;
#[path = "../../recipes/many_tasks.rs"]
mod many_tasks;
#[path = "../../recipes/password.rs"]
mod password;
#[path = "../../recipes/queue_worker.rs"]
mod queue_worker;
#[path = "../../recipes/ready.rs"]
mod ready;
#[path = "../../../crates/core/tests/support/mod.rs"]
mod support;
#[path = "../../recipes/tenants.rs"]
mod tenants;
#[path = "../../recipes/weights.rs"]
mod weights;

mod batch;
mod executor;
mod flagged;
mod many;
mod moved;
mod passwords;
mod readiness;
mod service;
mod shapes;
#[path = "../streams/mod.rs"]
mod streams;
mod tenants_share;
mod weighted;
mod worker;

use std::fmt::Debug;
use std::pin::pin;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use twolane::CpuRuntime;

use support::{Lanes, Stuck, limit_this_thread};

/// As the recipes of streams have it.
type Error = Box<dyn std::error::Error + Send + Sync>;

/// The lane that a recipe builds, on a runtime. The test has its time limit by that.
fn lanes_of<E: Debug>(build: impl FnOnce() -> Result<CpuRuntime, E>) -> Lanes {
    limit_this_thread();
    let io = Runtime::new().unwrap();
    let cpu = io.block_on(async { build().unwrap() });
    Lanes { cpu, io }
}

/// Serves on a free port until the runtime ends. Returns the address as a URL.
async fn serve(routes: axum::Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, routes).into_future());
    url
}

/// Takes every permit of the queue: then it is full.
fn fill(cpu: &twolane::Handle) -> Vec<twolane::Permit> {
    std::iter::from_fn(|| cpu.try_reserve().ok()).collect()
}

/// Keeps all threads of the handle's priority.
fn busy(cpu: &twolane::Handle) -> Vec<Stuck<()>> {
    let threads = 0..cpu.worker_threads();
    threads.map(|_| Stuck::start(cpu)).collect()
}

fn let_go(busy: Vec<Stuck<()>>) {
    busy.into_iter().for_each(Stuck::end);
}

/// Polls a future once, which has to wait, and drops it.
async fn give_up<F: Future>(future: F) {
    assert!(futures::poll!(pin!(future)).is_pending());
}
