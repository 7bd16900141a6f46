//! Many tasks at once: what users of Tokio's `JoinSet` write, and work that borrows.
//!
//! For code that splits a batch into jobs. A `Task` is a future that owns its job, so the
//! collections of the `futures` crate take the place of a `JoinSet`: dropping one cancels its jobs.
//! The first two functions submit all jobs at once, so a limited queue needs room for them.
//!
//! | you want | function |
//! |---|---|
//! | results as they come; dropping aborts the rest | [`as_they_come`] |
//! | results in order, or the first error | [`in_order`] |
//! | no more jobs than the queue takes; the input waits | [`within_the_limit`] |
//! | work that borrows, from a plain thread | [`borrow_on_a_plain_thread`] |
//! | work that borrows, from async code | [`borrow_in_a_job`] |
//!
//! ```text
//! cargo run --release -p examples --example many_tasks
//! ```
//!
//! To copy it: `cargo add twolane futures rayon` and `cargo add tokio -F full`.

use futures::future::try_join_all;
use futures::stream::{self, FuturesUnordered, Stream, StreamExt, TryStreamExt};
use rayon::prelude::*;
use twolane::{CpuRuntime, Handle, JoinError, Priority};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let builder = CpuRuntime::builder();
    let runtime = builder.queue_limit(Priority::Normal, 1_000).build()?;
    let cpu = runtime.handle().clone();
    let texts: Vec<String> = (0..100).map(|n| "word ".repeat(n)).collect();

    let first = as_they_come(&cpu, texts.clone(), |words| words >= 10).await?;
    let ordered = in_order(&cpu, texts.clone()).await?;
    println!("ten or more: {first:?}; in order: {:?}", &ordered[..5]);
    let sum = within_the_limit(&cpu, stream::iter(texts.clone())).await?;
    let ends = borrow_in_a_job(&cpu, texts.clone()).await?;
    println!("{sum} words; the longest and the shortest text: {ends:?}");

    // `install` blocks its caller, so not on a thread of Tokio.
    let thread = std::thread::spawn(move || borrow_on_a_plain_thread(&cpu, &texts));
    let again = thread.join().expect("it does not panic")?;
    println!("{again} words");
    runtime.shutdown().await;
    Ok(())
}

/// Stands for your CPU-heavy work.
fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Returns the first result that `is_enough`. The return drops the other tasks, and their queued
/// jobs never run. (`JoinSet::abort_all` is `tasks.iter().for_each(Task::abort)`.)
pub async fn as_they_come(
    cpu: &Handle,
    texts: Vec<String>,
    is_enough: impl Fn(usize) -> bool,
) -> Result<Option<usize>, JoinError> {
    let tasks = texts
        .into_iter()
        .map(|text| cpu.spawn_cpu(move || words(&text)));
    let mut tasks: FuturesUnordered<_> = tasks.collect();
    while let Some(count) = tasks.try_next().await? {
        if is_enough(count) {
            return Ok(Some(count));
        }
    }
    Ok(None)
}

/// The first error, such as a panic in a job, drops the other tasks.
pub async fn in_order(cpu: &Handle, texts: Vec<String>) -> Result<Vec<usize>, JoinError> {
    let task = |text: String| cpu.spawn_cpu(move || words(&text));
    try_join_all(texts.into_iter().map(task)).await
}

/// Reads a text only when the queue has room for its job. Meanwhile other code that calls
/// `spawn_cpu` at the same priority finds the queue full, so run a batch at `Priority::Low`, with
/// a limit of its own: `.queue_limit(Priority::Low, n)`. Without one `reserve` never waits.
pub async fn within_the_limit(
    cpu: &Handle,
    mut texts: impl Stream<Item = String> + Unpin,
) -> Result<usize, JoinError> {
    let mut tasks = Vec::new();
    loop {
        let permit = cpu.reserve().await?;
        let Some(text) = texts.next().await else {
            break;
        };
        tasks.push(permit.spawn_cpu(move || words(&text)));
    }
    let mut sum = 0;
    for task in tasks {
        sum += task.await?;
    }
    Ok(sum)
}

/// Blocks until the work is done, so call it on a plain thread only. It is no job: it cannot be
/// cancelled and needs no permit.
pub fn borrow_on_a_plain_thread(cpu: &Handle, texts: &[String]) -> Result<usize, JoinError> {
    cpu.install(|| texts.par_iter().map(|text| words(text)).sum())
}

/// A job is `'static`, so it owns its data. What it spawns in a `rayon::scope` borrows from it.
pub async fn borrow_in_a_job(
    cpu: &Handle,
    texts: Vec<String>,
) -> Result<(usize, usize), JoinError> {
    cpu.spawn_cpu(move || {
        let (mut longest, mut shortest) = (0, 0);
        let counts: Vec<usize> = texts.iter().map(|text| words(text)).collect();
        rayon::scope(|scope| {
            scope.spawn(|_| longest = counts.iter().copied().max().unwrap_or(0));
            scope.spawn(|_| shortest = counts.iter().copied().min().unwrap_or(0));
        });
        (longest, shortest)
    })
    .await
}
