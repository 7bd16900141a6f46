//! The contenders, and one run of one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle as Tokio;
use twolane::{CpuRuntime, Priority};
use twolane_benches::go::Go;
use twolane_benches::tail::sleep_until;
use twolane_benches::tail::work::Work;
use twolane_benches::{BoxError, io_runtime, lane};

use super::load::Load;

/// Backlogs of a lane that does not keep up end some time after the last arrival.
pub const BOUND: Duration = Duration::from_secs(120);

type Job = Box<dyn FnOnce() + Send>;

/// Opens a contender on that I/O runtime.
type Open = fn(&Load, &Tokio) -> Contender;

/// `None`: goroutines.
pub const WAYS: [(&str, Option<Open>); 5] = [
    (
        "twolane",
        Some(|load, io| on_lane(load, lane(io, |lane| lane), Priority::Normal)),
    ),
    (
        "twolane, FIFO",
        Some(|load, io| {
            let fifo = lane(io, |lane| lane.short_jobs_first(false));
            on_lane(load, fifo, Priority::Normal)
        }),
    ),
    (
        "twolane, short ones High",
        Some(|load, io| on_lane(load, lane(io, |lane| lane), Priority::High)),
    ),
    ("second runtime", Some(second_runtime)),
    ("goroutines", None),
];

pub struct Contender {
    /// Submits a job of that length. Boxed alike for all.
    submit: Box<dyn Fn(usize, Job)>,
    /// Waits until its threads are gone.
    close: Box<dyn FnOnce()>,
}

fn on_lane(load: &Load, cpu: CpuRuntime, of_short: Priority) -> Contender {
    let of_length = |(length, site): (usize, String)| {
        let label = if load.is_short(length) {
            of_short
        } else {
            Priority::Normal
        };
        cpu.handle().with_priority(label).with_name(&site)
    };
    let handles: Vec<_> = load
        .sites()
        .into_iter()
        .enumerate()
        .map(of_length)
        .collect();
    Contender {
        submit: Box::new(move |length, job| handles[length].spawn_cpu(job).detach()),
        close: Box::new(move || {
            cpu.shutdown().wait();
        }),
    }
}

/// Tasks of a second runtime, one worker for each core.
fn second_runtime(_: &Load, _: &Tokio) -> Contender {
    let runtime = twolane_benches::second_runtime();
    let handle = runtime.handle().clone();
    Contender {
        submit: Box::new(move |_, job| drop(handle.spawn(async { job() }))),
        close: Box::new(move || drop(runtime)),
    }
}

/// The latency of each arrival, in nanoseconds. `ms`: what takes a millisecond.
pub fn in_rust(load: &Load, open: Open, ms: Work) -> Vec<u64> {
    let works = load.works(ms);
    let io = io_runtime(2);
    let Contender { submit, close } = open(load, io.handle());
    let latencies: Vec<_> = load.arrivals.iter().map(|_| AtomicU64::new(0)).collect();
    let latencies = Arc::new(latencies);
    let left = Arc::new(AtomicUsize::new(load.arrivals.len()));
    let source = thread::current();
    let start = Instant::now();
    for (nth, arrival) in load.arrivals.iter().enumerate() {
        let due = start + arrival.at;
        sleep_until(due);
        let work = works[arrival.length];
        let (latencies, left, source) = (latencies.clone(), left.clone(), source.clone());
        let job = move || {
            work.run();
            latencies[nth].store(due.elapsed().as_nanos() as u64, SeqCst);
            if left.fetch_sub(1, SeqCst) == 1 {
                source.unpark();
            }
        };
        submit(arrival.length, Box::new(job));
    }
    while left.load(SeqCst) > 0 {
        thread::park();
    }
    drop(submit);
    close();
    latencies
        .iter()
        .map(|latency| latency.load(SeqCst))
        .collect()
}

/// The same of goroutines.
pub fn in_go(go: &Go, load: &Load) -> Result<Vec<u64>, BoxError> {
    let path = std::env::temp_dir().join(format!("twolane-mixed-load-{}", std::process::id()));
    std::fs::write(&path, load.as_text())?;
    let found = go.run(&[
        format!("-schedule={}", path.display()),
        // Its own bound is the first to end it, or it would outlive us.
        format!("-bound={}s", BOUND.as_secs() * 9 / 10),
    ]);
    let _ = std::fs::remove_file(path);
    found
}
