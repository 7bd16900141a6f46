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
use twolane_benches::means::{Case, Timed};
use twolane_benches::{Sample, cores, cpu_time, quantile};

use crate::contenders::{BASELINE, DRIVER, EVEN, FLOOR, HIGH, Offload, WEIGHED};

const GAP: Duration = Duration::from_millis(1);

/// What keeps a lane busy.
#[derive(Clone, Copy)]
struct Load {
    job: Duration,
    /// Jobs in flight, for each thread.
    in_flight: usize,
}

const LOAD: Load = Load {
    job: Duration::from_micros(50),
    in_flight: 4,
};
const SHORT_LOAD: Load = Load {
    job: Duration::from_micros(5),
    in_flight: 16,
};
const SMALL_BATCH: u64 = 100;
const LARGE_BATCH: u64 = 50_000;
const MIB: usize = 1 << 20;

/// Where contenders are measured from.
pub struct Measured {
    pub io: Arc<Runtime>,
    /// Divides how often.
    pub less: u64,
}

impl Measured {
    pub fn contender<O: Offload>(&self, name: &'static str, way: O) -> Timed<'static> {
        let case = |name, n: u64| Case::new(name, (n / self.less).max(1));
        let means = [
            case("hot", 5_000),
            case("mib", 5_000),
            case("batch_100", 200 * SMALL_BATCH),
            case("batch", LARGE_BATCH),
            case("batch_from_two", LARGE_BATCH),
        ];
        let of_cpu = ["hot_cpu", "batch_cpu", "allocations"];
        let of_weights = ["cold", "busy", "busy_short"];
        let (cases, others) = match name {
            // Of weights is all that they tell.
            HIGH | EVEN | WEIGHED => (&means[..0], of_weights.to_vec()),
            // One job at a time.
            DRIVER | FLOOR => (&means[..1], vec!["hot_cpu", "cold"]),
            // A load would be computed by the task that feeds it.
            BASELINE => (&means[..], [&of_cpu[..], &of_weights[..1]].concat()),
            _ => (&means[..], [of_cpu, of_weights].concat()),
        };
        let (ours, io) = (way.clone(), self.io.clone());
        let less = self.less;
        let on_other_io = self.io.clone();
        Timed {
            name: name.to_owned(),
            cases: cases.to_vec(),
            time: Box::new(move |case, n| on_io(&io, time(ours.clone(), case.name, n))),
            others,
            other: Box::new(move |case, sample| {
                other(&on_other_io, way.clone(), case, less, sample);
                Ok(())
            }),
        }
    }
}

/// Runs `task` as a task of the I/O runtime.
fn on_io<T: Send + 'static>(io: &Runtime, task: impl Future<Output = T> + Send + 'static) -> T {
    let task = io.spawn(task);
    io.block_on(task).unwrap()
}

/// How long `n` jobs of a case take.
async fn time<O: Offload>(way: O, case: &'static str, n: u64) -> Duration {
    match case {
        "hot" => hot(way, n).await,
        "mib" => with_mib(way, n).await,
        "batch_100" => in_batches(way, SMALL_BATCH, n).await,
        "batch" => in_batches(way, LARGE_BATCH, n).await,
        "batch_from_two" => {
            let start = Instant::now();
            let other = tokio::spawn(in_batches(way.clone(), LARGE_BATCH / 2, n / 2));
            in_batches(way, LARGE_BATCH / 2, n - n / 2).await;
            other.await.unwrap();
            start.elapsed()
        }
        _ => unreachable!("no such case: {case}"),
    }
}

/// What is no mean of wall time.
fn other<O: Offload>(io: &Runtime, way: O, case: &'static str, less: u64, sample: &mut Sample) {
    let trips = (100 / less).max(2);
    match case {
        "hot_cpu" | "batch_cpu" => {
            let (of, n) = if case == "hot_cpu" {
                ("hot", 5_000)
            } else {
                ("batch", LARGE_BATCH)
            };
            let n = n / less;
            let cpu = cpu_time::of_process();
            on_io(io, time(way, of, n));
            let cpu = cpu_time::of_process() - cpu;
            sample.put(case, "ns", cpu.as_nanos() as f64 / n as f64);
        }
        "cold" => {
            let (each, cpu) = on_io(io, cold(way, trips));
            put_trips(sample, ["cold", "cold_p99"], each);
            sample.put("cold_cpu", "ns", cpu);
        }
        "busy" => {
            let (each, used) = on_io(io, busy(way, LOAD, trips));
            put_trips(sample, ["busy", "busy_p99"], each);
            sample.put("busy_load", "fraction", used);
        }
        "busy_short" => {
            let (each, used) = on_io(io, busy(way, SHORT_LOAD, trips));
            put_trips(sample, ["busy_short", "busy_short_p99"], each);
            sample.put("busy_short_load", "fraction", used);
        }
        "allocations" => on_io(io, allocations(way, LARGE_BATCH / less))
            .into_iter()
            .for_each(|(metric, unit, each)| sample.put(metric, unit, each)),
        _ => unreachable!("no such case: {case}"),
    }
}

fn put_trips(sample: &mut Sample, [p50, p99]: [&'static str; 2], each: Vec<f64>) {
    sample.put(p50, "ns", quantile(each.iter().copied(), 0.5));
    sample.put(p99, "ns", quantile(each, 0.99));
}

async fn hot<O: Offload>(way: O, trips: u64) -> Duration {
    let start = Instant::now();
    for _ in 0..trips {
        assert_eq!(way.offload(|| black_box(1_u64)).await, 1);
    }
    start.elapsed()
}

async fn with_mib<O: Offload>(way: O, trips: u64) -> Duration {
    let mut bytes = vec![1_u8; MIB];
    let start = Instant::now();
    for _ in 0..trips {
        bytes = way.offload(move || black_box(bytes)).await;
    }
    let took = start.elapsed();
    assert_eq!(bytes.len(), MIB);
    took
}

async fn in_batches<O: Offload>(way: O, batch: u64, jobs: u64) -> Duration {
    count_in_batches(way, batch, jobs, None).await
}

/// Counts the allocations as well, without that of the `Vec` of tasks.
async fn count_in_batches<O: Offload>(
    way: O,
    batch: u64,
    jobs: u64,
    operation: Option<&Operation>,
) -> Duration {
    let mut tasks = Vec::with_capacity(batch.min(jobs) as usize);
    let _span = operation.map(|operation| operation.measure_process().iterations(jobs));
    let start = Instant::now();
    let mut left = jobs;
    while left > 0 {
        let batch = batch.min(left);
        left -= batch;
        // Two words, so that no contender gets away without room for captures.
        let submit = |i| way.offload(move || black_box(i) + black_box(batch));
        tasks.extend((0..batch).map(submit));
        for (i, task) in (0..).zip(tasks.drain(..)) {
            assert_eq!(task.await, i + batch);
        }
    }
    start.elapsed()
}

async fn cold<O: Offload>(way: O, trips: u64) -> (Vec<f64>, f64) {
    let cpu = cpu_time::of_process();
    let each = with_gaps(way, trips).await;
    let cpu = cpu_time::of_process() - cpu;
    (each, cpu.as_nanos() as f64 / trips as f64)
}

/// In a busy lane the moments in which the load is late would, without a gap, give
/// many quick trips, and count for more than the others.
async fn with_gaps<O: Offload>(way: O, trips: u64) -> Vec<f64> {
    let mut each = Vec::with_capacity(trips as usize);
    for _ in 0..trips {
        tokio::time::sleep(GAP).await;
        let start = Instant::now();
        assert_eq!(way.offload_urgent(|| black_box(1_u64)).await, 1);
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
    let used = jobs as f64 * with.job.as_secs_f64() / begin.elapsed().as_secs_f64();
    over.store(true, Relaxed);
    load.await.unwrap();
    (each, used / cores() as f64)
}

async fn load<O: Offload>(
    way: O,
    with: Load,
    over: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    full: tokio::sync::oneshot::Sender<()>,
) {
    let submit = || {
        let done = done.clone();
        way.offload(move || {
            spin(with.job);
            done.fetch_add(1, Relaxed);
        })
    };
    let mut in_flight: FuturesUnordered<_> =
        (0..with.in_flight * cores()).map(|_| submit()).collect();
    full.send(()).unwrap();
    while in_flight.next().await.is_some() {
        if !over.load(Relaxed) {
            in_flight.push(submit());
        }
    }
}

fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

async fn allocations<O: Offload>(way: O, jobs: u64) -> [(&'static str, &'static str, f64); 4] {
    let session = Session::new().no_stdout().no_file();
    let batch = session.operation("batch");
    count_in_batches(way.clone(), jobs, jobs, Some(&batch)).await;
    let operation = session.operation("hot");
    {
        let trips = jobs / 10;
        let _span = operation.measure_process().iterations(trips);
        hot(way, trips).await;
    }
    let report = session.to_report();
    let of = |name: &str| {
        let mut found = report.operations().filter(|(found, _)| *found == name);
        let (_, operation) = found.next().expect("it was measured above");
        let each = |figure: Option<f64>| figure.expect("it has iterations");
        (each(operation.allocations()), each(operation.bytes()))
    };
    let ((batch, batch_bytes), (hot, hot_bytes)) = (of("batch"), of("hot"));
    [
        ("allocations_batch", "count", batch),
        ("bytes_batch", "bytes", batch_bytes),
        ("allocations_hot", "count", hot),
        ("bytes_hot", "bytes", hot_bytes),
    ]
}
