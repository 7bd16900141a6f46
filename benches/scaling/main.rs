//! What does a job cost on a lane of 1, 2, 16 and 64 workers?
//!
//! Empty jobs, so that nothing but the lane counts:
//!
//! - `burst`: one thread submits closures and waits for all,
//! - `inside`: as many jobs as there are workers submit the closures,
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

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use twolane::Handle;
use twolane_benches::{Bench, Column, Contender, Contest, Report, Sample, io_runtime, lane};

const WORKERS: [usize; 4] = [1, 2, 16, 64];
const KINDS: [&str; 3] = ["burst", "inside", "woken"];
const TURNS: usize = 10;

fn main() {
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
            run(kind, workers, &io, &cpu.handle(), jobs / 10);
            let took = run(kind, workers, &io, &cpu.handle(), jobs);
            let each = took.as_secs_f64() * 1e9 / jobs as f64;
            Ok(Sample::of("ns_a_job", "ns", each))
        })
    });
    let contest = Contest::new(
        contenders,
        bench.rounds([1, 2, 4, 8]),
        Duration::from_secs(60),
    )
    .ending_threads();
    let Some(found) = bench.run(contest) else {
        return;
    };

    let mut report = Report::new(bench.name, &found);
    report.table("time of a job, ns", "", &[Column::spread("ns", "ns_a_job")]);
    for (kind, workers) in cases.filter(|(_, workers)| *workers > 1) {
        let ratio = format!("{kind}_{workers}_over_1");
        report.ratio(ratio, "ns_a_job", &name(kind, workers), &name(kind, 1));
    }
    report.finish();
}

fn name(kind: &str, workers: usize) -> String {
    format!("{kind}_{workers}")
}

/// The last of them tells the waiting thread.
struct Ends {
    left: AtomicUsize,
    told: std::sync::Mutex<Option<oneshot::Sender<()>>>,
}

impl Ends {
    fn one(&self) {
        if self.left.fetch_sub(1, Relaxed) == 1 {
            let last = self.told.lock().unwrap().take();
            let _ = last.expect("there is one last").send(());
        }
    }
}

fn run(kind: &str, workers: usize, io: &Runtime, cpu: &Handle, jobs: usize) -> Duration {
    let (told, all_ended) = oneshot::channel();
    let each = jobs / workers;
    let futures = jobs / TURNS;
    let ends = Arc::new(Ends {
        left: AtomicUsize::new(match kind {
            "burst" => jobs,
            "inside" => each * workers,
            _ => futures,
        }),
        told: std::sync::Mutex::new(Some(told)),
    });
    let began = Instant::now();
    match kind {
        "burst" => submit(cpu, &ends, jobs),
        "inside" => {
            for _ in 0..workers {
                let (inside, ends) = (cpu.clone(), ends.clone());
                cpu.spawn_cpu(move || submit(&inside, &ends, each)).detach();
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
    io.block_on(all_ended).unwrap();
    began.elapsed()
}

fn submit(cpu: &Handle, ends: &Arc<Ends>, jobs: usize) {
    for _ in 0..jobs {
        let ends = ends.clone();
        cpu.spawn_cpu(move || ends.one()).detach();
    }
}
