//! One run of a contender of Rust's.

use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, Runtime};

use crate::args::Plan;
use crate::arrivals::{Schedule, Source};
use crate::contender::Contestant;
use crate::fib::{SMALL, compute};
use crate::outcome::Outcome;
use crate::support::cores;
use crate::support::threads::Threads;

/// How long the long jobs should take, from one on each core at once. Asked
/// before each run: a shared machine isn't equally fast all the time.
pub fn expected(plan: &Plan) -> Duration {
    let one = || {
        let begun = Instant::now();
        compute(plan.k) - begun
    };
    let took: Duration = thread::scope(|scope| {
        let running: Vec<_> = (0..cores()).map(|_| scope.spawn(one)).collect();
        running.into_iter().map(|one| one.join().unwrap()).sum()
    });
    let cores = cores() as f64;
    took.mul_f64(plan.jobs as f64 / (cores * cores))
}

/// A fresh I/O runtime for each run, so that no thread of one contender is
/// there during the next.
pub fn io_runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

pub fn run(
    plan: &Plan,
    expected: Duration,
    open: fn(&Handle) -> Contestant,
    late_jobs: Schedule,
    source: Source,
) -> Outcome {
    let threads = Threads::now();
    let io = io_runtime();
    let Contestant { long, late, close } = open(io.handle());
    io.block_on(long(SMALL));
    let arrivals = source.arm(io.handle(), late, late_jobs);

    let start = Instant::now();
    let arrivals = arrivals.begin(start + expected.mul_f64(plan.late_from));
    let running: Vec<_> = (0..plan.jobs).map(|_| long(plan.k)).collect();
    let outcome = io.block_on(async {
        let mut long_ends = Vec::with_capacity(plan.jobs);
        for job in running {
            long_ends.push(job.await - start);
        }
        let late = arrivals.answers(start).await;
        Outcome {
            long_ends,
            late,
            others: None,
        }
    });

    drop(long);
    close();
    drop(io);
    threads.wait_for_others_to_end();
    outcome
}
