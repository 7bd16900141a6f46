//! 10,000 jobs are queued, and a small one arrives that a user waits for. When is its answer there?
//!
//! The jobs compute Fibonacci numbers, as in a comparison of Go, Tokio and rayon whose author asked:
//! *imagine a job with very little work joins midway*. Pools start jobs in the order in which they
//! came, so the small one waits for those that are queued:
//!
//! - as people do it: `spawn_blocking`, whose 512 threads share the cores, and a rayon pool;
//! - on twolane, with the small job at `Priority::High`, which has its own queue and threads.
//!
//! "Queued" is how many of the 10,000 had not ended when the small one came, and "left" how many
//! when its answer was there. It fails if the small job waited for half of them on twolane.
//!
//! It is no benchmark: `cargo bench --bench late_job` has percentiles, goroutines and the price in
//! total time. `docs/late_job.md` says when to use a priority.
//!
//! ```text
//! cargo run --release -p demos --example late_job   # 6 seconds
//! ```

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use twolane::{CpuRuntime, Priority};

const JOBS: usize = 10_000;
/// What the jobs take on all cores, if these do nothing else.
const ALL_TAKE: Duration = Duration::from_millis(1_000);
const LATER: Duration = Duration::from_millis(100);

type Job = Box<dyn FnOnce() + Send>;
type Error = Box<dyn std::error::Error>;

fn fib(n: u32) -> u64 {
    if n < 2 { 1 } else { fib(n - 1) + fib(n - 2) }
}

fn main() -> Result<(), Error> {
    let cores = available_parallelism()?.get();
    let takes = |n| {
        let start = Instant::now();
        black_box(fib(black_box(n)));
        start.elapsed()
    };
    let least = ALL_TAKE * cores as u32 / JOBS as u32;
    let long = (10..).find(|&n| (0..5).all(|_| takes(n) >= least)).unwrap();
    println!("{JOBS} jobs of fib({long}); {LATER:?} later one of fib(10)\n");
    println!(
        "{:32}{:>12}{:>8}{:>8}{:>12}",
        "", "answer", "queued", "left", "all done"
    );

    let io = Runtime::new()?;
    let by_tokio = |job: Job| drop(io.spawn_blocking(job));
    contend("spawn_blocking", long, by_tokio, by_tokio);

    let pool = rayon::ThreadPoolBuilder::new().num_threads(cores).build()?;
    let by_rayon = |job: Job| pool.spawn(job);
    contend("a rayon pool", long, by_rayon, by_rayon);

    let cpu = CpuRuntime::builder()
        .io_handle(io.handle().clone())
        .build()?;
    let (lane, urgent) = (
        cpu.handle().clone(),
        cpu.handle().with_priority(Priority::High),
    );
    let is_prompt = contend(
        "twolane, the small job at High",
        long,
        |job| lane.spawn_cpu(job).detach(),
        |job| urgent.spawn_cpu(job).detach(),
    );

    if !is_prompt {
        return Err("on twolane the small job waited for the queue".into());
    }
    println!("\nIn a pool the small job waits for all others. At `Priority::High` it does not.");
    Ok(())
}

/// Returns whether the small job overtook half of what was queued.
fn contend(name: &str, n: u32, submit: impl Fn(Job), submit_small: impl Fn(Job)) -> bool {
    let done = Arc::new(AtomicUsize::new(0));
    let to_do = |done: &AtomicUsize| JOBS - done.load(Relaxed);
    let (ended, ends) = mpsc::channel();
    let start = Instant::now();
    for _ in 0..JOBS {
        let (done, ended) = (done.clone(), ended.clone());
        submit(Box::new(move || {
            black_box(fib(black_box(n)));
            done.fetch_add(1, Relaxed);
            drop(ended);
        }));
    }
    drop(ended);

    sleep(LATER);
    let (answer, answered) = mpsc::channel();
    let (submitted, queued) = (Instant::now(), to_do(&done));
    let at_work = done.clone();
    submit_small(Box::new(move || {
        black_box(fib(black_box(10)));
        let _ = answer.send((submitted.elapsed(), to_do(&at_work)));
    }));
    let (after, left) = answered.recv().expect("an answer");
    // Until all have ended.
    let _ = ends.recv() as Result<(), _>;
    let (answer_ms, all) = (after.as_secs_f64() * 1e3, start.elapsed().as_secs_f64());
    println!("{name:32}{answer_ms:>9.2} ms{queued:>8}{left:>8}{all:>10.2} s");
    left * 2 > queued
}
