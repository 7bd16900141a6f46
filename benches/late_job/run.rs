//! One run of a contender, and the figures of it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::runtime::Handle;
use twolane_benches::findings::empty_histogram;
use twolane_benches::go::Go;
use twolane_benches::{BoxError, Sample, cores, io_runtime, lane, median};

use crate::arrivals::{Arrivals, Late};
use crate::contenders::{Contestant, small_future};
use crate::fib::{SMALL, compute, compute_piece};

/// A busy machine may be slow, and a contender may answer the small jobs last.
pub const BOUND: Duration = Duration::from_secs(240);

/// What one run of a contender does.
#[derive(Clone, Copy)]
pub struct Plan {
    /// A long job is `fib(k)`.
    pub k: u32,
    pub jobs: usize,
    pub late: usize,
    pub every: Duration,
}

/// Long futures of the part in which all have started.
const STARTED: usize = 200;

/// The first arrival, as a part of the expected total.
const LATE_FROM: f64 = 0.25;

/// What a run finds; Go's program prints the same.
#[derive(Deserialize)]
pub struct Outcome {
    pub long_ends_ns: Vec<u64>,
    pub late: Vec<Late>,
}

/// How long the long jobs should take, from one on each core at once. Measured
/// before each run: a shared machine isn't equally fast all the time.
fn expected(plan: &Plan) -> Duration {
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

pub fn queued(plan: &Plan, open: fn(&Handle) -> Contestant) -> Outcome {
    let expected = expected(plan);
    // A fresh one for each run, so that no thread of one contender is there during the next.
    let io = io_runtime(2);
    let Contestant { long, late, close } = open(io.handle());
    io.block_on(long(SMALL));
    let arrivals = Arrivals::arm(io.handle(), late, plan.late, plan.every);

    let start = Instant::now();
    let arrivals = arrivals.begin(start + expected.mul_f64(LATE_FROM));
    let running: Vec<_> = (0..plan.jobs).map(|_| long(plan.k)).collect();
    let outcome = io.block_on(async {
        let mut long_ends_ns = Vec::with_capacity(plan.jobs);
        for job in running {
            long_ends_ns.push((job.await - start).as_nanos() as u64);
        }
        let late = arrivals.answers(start).await;
        Outcome { long_ends_ns, late }
    });
    drop(long);
    close();
    outcome
}

/// Long futures that have all been polled, and small ones that come late: the
/// acceptance test of `yield_if_due`. They have no end of their own, and so no total.
pub fn started_futures(plan: &Plan) -> Outcome {
    let io = io_runtime(2);
    let cpu = lane(io.handle(), |lane| lane);
    let for_late = cpu.handle().clone();
    let late = Box::new(move || small_future(&for_late));
    let arrivals = Arrivals::arm(io.handle(), late, plan.late, plan.every);

    let stop = Arc::new(AtomicBool::new(false));
    let (started, has_started) = mpsc::channel();
    let long: Vec<_> = (0..STARTED)
        .map(|_| {
            let (stop, started) = (stop.clone(), started.clone());
            cpu.spawn(async move {
                started.send(()).unwrap();
                while !stop.load(Relaxed) {
                    compute_piece();
                    twolane::yield_if_due().await;
                }
            })
        })
        .collect();
    for _ in 0..STARTED {
        has_started.recv().unwrap();
    }

    let start = Instant::now();
    let late = io.block_on(arrivals.begin(start + plan.every).answers(start));
    stop.store(true, Relaxed);
    io.block_on(async {
        for job in long {
            job.await.unwrap();
        }
    });
    cpu.shutdown().wait();
    Outcome {
        long_ends_ns: Vec::new(),
        late,
    }
}

pub fn in_go(go: &Go, plan: Plan) -> Result<Outcome, BoxError> {
    // Its own bound is the first to end it, or it would outlive us.
    go.run(&[
        format!("-k={}", plan.k),
        format!("-jobs={}", plan.jobs),
        format!("-late-k={SMALL}"),
        format!("-late-jobs={}", plan.late),
        format!("-late-every={}us", plan.every.as_micros()),
        format!("-late-from={LATE_FROM}"),
        format!("-bound={}s", BOUND.as_secs() * 9 / 10),
    ])
}

pub fn sample(outcome: &Outcome) -> Sample {
    let mut sample = Sample::default();
    let latency = |late: &Late| late.ended_ns.saturating_sub(late.intended_ns);
    let ends = &outcome.long_ends_ns;
    // Those that are to arrive when no long one is left say nothing.
    let last = ends.iter().max();
    let is_beside = |late: &&Late| last.is_none_or(|last| late.intended_ns <= *last);
    let lates: Vec<&Late> = outcome.late.iter().filter(is_beside).collect();
    if let (Some(first), Some(last)) = (ends.iter().min(), last) {
        sample.put("first_long_end", "s", *first as f64 / 1e9);
        sample.put("total", "s", *last as f64 / 1e9);
        // Of each tenth of them, in the order in which they came.
        let tenths = lates.chunks(lates.len().div_ceil(10).max(1));
        for (nth, tenth) in tenths.enumerate() {
            let ms = tenth.iter().map(|late| latency(late) as f64 / 1e6);
            sample.put(format!("late_tenth_{nth}"), "ms", median(ms));
        }
    }
    let mut latencies = empty_histogram();
    for late in lates {
        latencies.saturating_record(latency(late));
    }
    sample.put_latencies("late", latencies);
    sample
}
