//! The cases that all contenders of Rust's have, as each of them writes them.
//! All of it runs inside one job of the contender; nothing is boxed for the
//! bench's sake.

use std::fmt::Debug;
use std::future::Future;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use crate::case::{BATCH, Case, Figures};
use crate::plan::Plan;

/// How a contender starts a future, and how one gives way there.
pub trait Spawn: Send + Sync + 'static {
    type Error: Debug;
    type Task<T: Send + 'static>: Future<Output = Result<T, Self::Error>> + Send;

    /// Called inside one of its own tasks.
    fn spawn<F>(&self, future: F) -> Self::Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static;

    fn yield_now() -> impl Future<Output = ()> + Send;
}

/// Nanoseconds for each of `n` since `begun`.
pub fn each(begun: Instant, n: u32) -> f64 {
    begun.elapsed().as_nanos() as f64 / f64::from(n)
}

pub async fn figures<S: Spawn>(spawn: &S, plan: &Plan) -> Figures {
    let mut figures = Figures::new();
    for (case, futures) in Case::SWITCHES {
        figures.insert(case, switch(spawn, futures, plan.switches).await);
    }
    figures.insert(Case::Start, start(spawn, plan.starts).await);
    figures.insert(Case::Start1000, start_1000(spawn, plan.batches).await);
    figures
}

async fn switch<S: Spawn>(spawn: &S, futures: u32, switches: u32) -> f64 {
    let arrived = Arc::new(AtomicU32::new(0));
    let yields = switches / futures;
    let running: Vec<_> = (0..futures)
        .map(|_| {
            let arrived = arrived.clone();
            spawn.spawn(async move {
                arrived.fetch_add(1, Relaxed);
                while arrived.load(Relaxed) < futures {
                    S::yield_now().await;
                }
                let begun = Instant::now();
                for _ in 0..yields {
                    S::yield_now().await;
                }
                (begun, Instant::now())
            })
        })
        .collect();
    let mut spans = Vec::with_capacity(running.len());
    for one in running {
        spans.push(one.await.unwrap());
    }
    let first = spans.iter().map(|(begun, _)| *begun).min().unwrap();
    let last = spans.iter().map(|(_, ended)| *ended).max().unwrap();
    (last - first).as_nanos() as f64 / f64::from(yields * futures)
}

async fn start<S: Spawn>(spawn: &S, n: u32) -> f64 {
    let begun = Instant::now();
    for _ in 0..n {
        assert_eq!(spawn.spawn(async { black_box(1) }).await.unwrap(), 1);
    }
    each(begun, n)
}

async fn start_1000<S: Spawn>(spawn: &S, batches: u32) -> f64 {
    let mut started = Vec::with_capacity(BATCH as usize);
    let begun = Instant::now();
    for _ in 0..batches {
        started.extend((0..BATCH).map(|_| spawn.spawn(async { black_box(1) })));
        for one in started.drain(..) {
            assert_eq!(one.await.unwrap(), 1);
        }
    }
    each(begun, batches * BATCH)
}
