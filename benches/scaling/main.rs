//! What does a job cost on a lane of 1, 2, 16 and 64 workers?
//!
//! Empty jobs, so that nothing but the lane counts:
//!
//! - `burst`: one thread submits closures and sleeps until all have ended,
//! - `woken`: futures that wake themselves ten times; each turn counts as a job.
//!
//! On a machine with as many cores as workers this shows how the lane scales. On fewer it shows
//! little. `.ci/kernels scaling` runs it on 2, 16 and 64 cores of an emulator in virtual time,
//! where an instruction takes 1 ns and only one core runs at a time: there the time of a job is the
//! number of instructions that all cores take for it, with the kernel's. It shows what grows with
//! the number of workers. It shows nothing of caches.
//!
//! ```text
//! cargo bench --bench scaling
//! ```

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use twolane::Handle;
use twolane_benches::{Bench, Column, Contender, Contest, Sample, io_runtime, lane};

const WORKERS: [usize; 4] = [1, 2, 16, 64];
const KINDS: [&str; 2] = ["burst", "woken"];
const TURNS: usize = 10;

fn main() -> ExitCode {
    let bench = Bench::new("scaling");
    let jobs = bench.pick([10_000, 20_000, 100_000, 400_000]);
    let cases = KINDS
        .into_iter()
        .flat_map(|kind| WORKERS.map(|workers| (kind, workers)));
    let contenders = cases.clone().map(|(kind, workers)| {
        Contender::new(name(kind, workers), move || {
            let io = io_runtime(1);
            let cpu = lane(io.handle(), |lane| lane.worker_threads(workers));
            // The first starts the threads of the pool's queues.
            run(kind, cpu.handle(), jobs / 10);
            let took = run(kind, cpu.handle(), jobs);
            let each = took.as_secs_f64() * 1e9 / jobs as f64;
            Ok(Sample::of("ns_a_job", "ns", each))
        })
    });
    let contest =
        Contest::new(&bench, contenders, [1, 2, 4, 8], Duration::from_secs(60)).ending_threads();
    contest.report(|report| {
        report.table("time of a job, ns", "", &[Column::spread("ns", "ns_a_job")]);
        for (kind, workers) in cases.filter(|(_, workers)| *workers > 1) {
            let ratio = format!("{kind}_{workers}_over_1");
            report.ratio(ratio, "ns_a_job", &name(kind, workers), &name(kind, 1));
        }
    })
}

fn name(kind: &str, workers: usize) -> String {
    format!("{kind}_{workers}")
}

/// The last of them wakes the thread that waits.
struct Ends {
    left: AtomicUsize,
    waits: Thread,
}

impl Ends {
    fn one(&self) {
        if self.left.fetch_sub(1, SeqCst) == 1 {
            self.waits.unpark();
        }
    }
}

fn run(kind: &str, cpu: &Handle, jobs: usize) -> Duration {
    let futures = jobs / TURNS;
    let ends = Arc::new(Ends {
        left: AtomicUsize::new(match kind {
            "burst" => jobs,
            _ => futures,
        }),
        waits: thread::current(),
    });
    let began = Instant::now();
    match kind {
        "burst" => {
            for _ in 0..jobs {
                let ends = ends.clone();
                cpu.spawn_cpu(move || ends.one()).detach();
            }
        }
        _ => {
            for _ in 0..futures {
                let ends = ends.clone();
                let turns = async move {
                    for _ in 1..TURNS {
                        twolane::yield_now().await;
                    }
                    ends.one();
                };
                cpu.spawn(turns).detach();
            }
        }
    }
    while ends.left.load(SeqCst) > 0 {
        thread::park();
    }
    began.elapsed()
}
