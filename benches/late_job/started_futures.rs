//! Long futures that have all been polled, and small ones that come late: the
//! acceptance test of `yield_if_due`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Instant;

use twolane::Backend;

use crate::args::Plan;
use crate::arrivals::Source;
use crate::fib::compute_piece;
use crate::outcome::Outcome;
use crate::run::io_runtime;
use crate::support::threads::Threads;
use crate::twolane_side::{close, open, small_future};

pub fn run(plan: &Plan, backend: Backend, source: Source) -> Outcome {
    let threads = Threads::now();
    let io = io_runtime();
    let cpu = open(io.handle(), backend);
    let handle = cpu.handle();
    let for_late = handle.clone();
    let late = Arc::new(move || small_future(&for_late));
    let arrivals = source.arm(io.handle(), late, plan.late);

    let stop = Arc::new(AtomicBool::new(false));
    let (started, has_started) = mpsc::channel();
    let long: Vec<_> = (0..plan.started_futures)
        .map(|_| {
            let (stop, started) = (stop.clone(), started.clone());
            handle.spawn(async move {
                started.send(()).unwrap();
                while !stop.load(Relaxed) {
                    compute_piece();
                    twolane::yield_if_due().await;
                }
            })
        })
        .collect();
    for _ in 0..plan.started_futures {
        has_started.recv().unwrap();
    }

    let start = Instant::now();
    let late = io.block_on(arrivals.begin(start + plan.late.every).answers(start));
    stop.store(true, Relaxed);
    io.block_on(async {
        for job in long {
            job.await.unwrap();
        }
    });

    close(&cpu);
    drop(io);
    threads.wait_for_others_to_end();
    // These have no end of their own, and so no total.
    Outcome {
        long_ends: Vec::new(),
        late,
        others: None,
    }
}
