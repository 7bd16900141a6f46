//! The measurements, the same for each contender.

use std::future::Future;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use alloc_tracker::{Operation, Session};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::runtime::Runtime;
use twolane_benches::{Contender, Sample, cores, cpu_time, quantile};

use crate::ways::{BASELINE, HIGH, Offload};

const GAP: Duration = Duration::from_millis(1);

/// What keeps a lane busy: jobs of some length, and how many for each thread are in flight.
type Load = (Duration, usize);

const LOAD: Load = (Duration::from_micros(50), 4);
const SHORT_LOAD: Load = (Duration::from_micros(5), 16);
const LARGE_BATCH: u64 = 50_000;

/// Where contenders are measured from.
pub struct Measured {
    pub io: Arc<Runtime>,
    /// Divides how often.
    pub less: u64,
}

impl Measured {
    pub fn contender<O: Offload>(&self, name: &'static str, way: O) -> Contender<'static> {
        const BATCHES: [&str; 2] = ["batch", "allocations"];
        let gaps = ["cold", "busy", "busy_short"];
        let cases = match name {
            HIGH => gaps.to_vec(),
            // A load would be computed by the task that feeds it.
            BASELINE => [&["hot", "cold"], &BATCHES[..]].concat(),
            _ => [&["hot"], &BATCHES[..], &gaps].concat(),
        };
        let (io, less) = (self.io.clone(), self.less);
        Contender::new(name, move || {
            let mut sample = Sample::default();
            for case in &cases {
                let task = io.spawn(measure(way.clone(), case, less, sample));
                sample = io.block_on(task).unwrap();
            }
            Ok(sample)
        })
    }
}

/// With the figures of a case.
async fn measure<O: Offload>(way: O, case: &'static str, less: u64, mut sample: Sample) -> Sample {
    let trips = (100 / less).max(2);
    let n = |n: u64| (n / less).max(1);
    match case {
        "hot" => each(&mut sample, case, n(5_000), |n| hot(way, n)).await,
        "batch" => {
            let jobs = n(LARGE_BATCH);
            each(&mut sample, case, jobs, |n| in_batch(way, n, None)).await;
        }
        "allocations" => allocations(&mut sample, way, n(LARGE_BATCH)).await,
        "cold" => {
            let cpu = cpu_time::of_process();
            let each = with_gaps(way, trips).await;
            let cpu = cpu_time::of_process() - cpu;
            tail(&mut sample, case, each);
            sample.put("cold_cpu", "ns", cpu.as_nanos() as f64 / trips as f64);
        }
        case => {
            let load = if case == "busy" { LOAD } else { SHORT_LOAD };
            let (each, used) = busy(way, load, trips).await;
            tail(&mut sample, case, each);
            sample.put(format!("{case}_load"), "", used);
        }
    }
    sample
}

/// The wall time and the CPU time of each of `n`.
async fn each<F: Future>(sample: &mut Sample, case: &str, n: u64, run: impl FnOnce(u64) -> F) {
    let (start, cpu) = (Instant::now(), cpu_time::of_process());
    run(n).await;
    let (took, cpu) = (start.elapsed(), cpu_time::of_process() - cpu);
    let ns = |time: Duration| time.as_nanos() as f64 / n as f64;
    sample.put(case, "ns", ns(took));
    sample.put(format!("{case}_cpu"), "ns", ns(cpu));
}

fn tail(sample: &mut Sample, case: &str, each: Vec<f64>) {
    let at = |q| quantile(each.iter().copied(), q);
    sample.put(case, "ns", at(0.5));
    sample.put(format!("{case}_p99"), "ns", at(0.99));
}

async fn hot<O: Offload>(way: O, trips: u64) {
    for _ in 0..trips {
        assert_eq!(way.offload(false, || black_box(1_u64)).await, 1);
    }
}

/// Counts the allocations as well, without that of the `Vec` of tasks.
async fn in_batch<O: Offload>(way: O, jobs: u64, count: Option<&Operation>) {
    let mut tasks = Vec::with_capacity(jobs as usize);
    let _span = count.map(|operation| operation.measure_process().iterations(jobs));
    // Two words, so that no contender gets away without room for captures.
    let submit = |i| way.offload(false, move || black_box(i) + black_box(jobs));
    tasks.extend((0..jobs).map(submit));
    for (i, task) in (0..).zip(tasks.drain(..)) {
        assert_eq!(task.await, i + jobs);
    }
}

/// In a busy lane the moments in which the load is late would, without a gap, give
/// many quick trips, and count for more than the others.
async fn with_gaps<O: Offload>(way: O, trips: u64) -> Vec<f64> {
    let mut each = Vec::with_capacity(trips as usize);
    for _ in 0..trips {
        tokio::time::sleep(GAP).await;
        let start = Instant::now();
        assert_eq!(way.offload(true, || black_box(1_u64)).await, 1);
        each.push(start.elapsed().as_nanos() as f64);
    }
    each
}

/// The trips, and how much of the lane's time the load has used meanwhile.
async fn busy<O: Offload>(way: O, with: Load, trips: u64) -> (Vec<f64>, f64) {
    let over = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicUsize::new(0));
    let (full, is_full) = tokio::sync::oneshot::channel();
    let load = tokio::spawn(load(way.clone(), with, over.clone(), done.clone(), full));
    is_full.await.unwrap();
    let (begin, before) = (Instant::now(), done.load(Relaxed));
    let each = with_gaps(way, trips).await;
    let jobs = done.load(Relaxed) - before;
    let used = jobs as f64 * with.0.as_secs_f64() / begin.elapsed().as_secs_f64();
    over.store(true, Relaxed);
    load.await.unwrap();
    (each, used / cores() as f64)
}

async fn load<O: Offload>(
    way: O,
    (time, in_flight): Load,
    over: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    full: tokio::sync::oneshot::Sender<()>,
) {
    let submit = || {
        let done = done.clone();
        way.offload(false, move || {
            let start = Instant::now();
            while start.elapsed() < time {
                std::hint::spin_loop();
            }
            done.fetch_add(1, Relaxed);
        })
    };
    let all = (0..in_flight * cores()).map(|_| submit());
    let mut in_flight: FuturesUnordered<_> = all.collect();
    full.send(()).unwrap();
    while in_flight.next().await.is_some() {
        if !over.load(Relaxed) {
            in_flight.push(submit());
        }
    }
}

async fn allocations<O: Offload>(sample: &mut Sample, way: O, jobs: u64) {
    let session = Session::new().no_stdout().no_file();
    let batch = session.operation("batch");
    in_batch(way, jobs, Some(&batch)).await;
    let report = session.to_report();
    let (_, found) = report.operations().next().expect("it was measured above");
    let each = |figure: Option<f64>| figure.expect("it has iterations");
    sample.put("allocations_batch", "count", each(found.allocations()));
    sample.put("bytes_batch", "bytes", each(found.bytes()));
}
