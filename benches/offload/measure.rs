//! The measurements, the same for each contender.

use std::future::Future;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use alloc_tracker::Session;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::runtime::Runtime;

use crate::args::{Measurement, Plan};
use crate::contenders::{BASELINE, EVEN, FLOOR, HIGH, Offload, WEIGHED};
use crate::support::{cores, cpu_time, quantile};

/// What one run found: the name of each metric, and its value.
pub type Found = Vec<(&'static str, f64)>;

pub trait Contender {
    fn name(&self) -> &'static str;
    fn run(&self, what: Measurement, plan: &Plan) -> Found;
}

pub struct Measured<O> {
    name: &'static str,
    io: Arc<Runtime>,
    way: O,
}

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
const SMALL_BATCH: usize = 100;
const MIB: usize = 1 << 20;

impl<O: Offload> Measured<O> {
    pub fn boxed(name: &'static str, io: &Arc<Runtime>, way: O) -> Box<dyn Contender> {
        let io = io.clone();
        Box::new(Self { name, io, way })
    }

    /// Runs `task` as a task of the I/O runtime.
    fn on_io<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> T {
        let task = self.io.spawn(task);
        self.io.block_on(task).unwrap()
    }

    fn busy(&self, with: Load, names: [&'static str; 3], plan: &Plan) -> Found {
        let (trips, used) = self.on_io(busy(self.way.clone(), with, plan.busy_trips));
        let p50 = quantile(trips.iter().copied(), 0.5);
        let p99 = quantile(trips, 0.99);
        names.into_iter().zip([p50, p99, used]).collect()
    }
}

impl<O: Offload> Contender for Measured<O> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&self, what: Measurement, plan: &Plan) -> Found {
        let way = self.way.clone();
        let is_of_interest = match self.name {
            // Of weights is all that they tell.
            HIGH | EVEN | WEIGHED => {
                use Measurement::{Busy, BusyShort, Cold};
                matches!(what, Cold | Busy | BusyShort)
            }
            // One job at a time.
            FLOOR => matches!(what, Measurement::Hot | Measurement::Cold),
            // A load would be computed by the task that feeds it.
            BASELINE => !matches!(what, Measurement::Busy | Measurement::BusyShort),
            _ => true,
        };
        if !is_of_interest {
            return Found::new();
        }
        match what {
            Measurement::Hot => {
                let (ns, cpu) = self.on_io(hot(way, plan.hot_trips, || black_box(1_u64)));
                vec![("hot", ns), ("hot cpu", cpu)]
            }
            Measurement::MiB => {
                let (ns, _) = self.on_io(with_mib(way, plan.hot_trips));
                vec![("1 MiB", ns)]
            }
            Measurement::Cold => {
                let (trips, cpu) = self.on_io(cold(way, plan.cold_trips));
                vec![
                    ("cold", quantile(trips.iter().copied(), 0.5)),
                    ("cold p99", quantile(trips, 0.99)),
                    ("cold cpu", cpu),
                ]
            }
            Measurement::Busy => self.busy(LOAD, ["busy", "busy p99", "busy load"], plan),
            Measurement::BusyShort => {
                let names = ["busy short", "busy short p99", "busy short load"];
                self.busy(SHORT_LOAD, names, plan)
            }
            Measurement::Batch => {
                let small = {
                    let (way, times) = (way.clone(), plan.small_batches);
                    self.on_io(async move {
                        let start = Instant::now();
                        for _ in 0..times {
                            batch(&way, SMALL_BATCH).await;
                        }
                        ns_each(start, times * SMALL_BATCH)
                    })
                };
                let jobs = plan.large_batch;
                let cpu = cpu_time::of_process();
                let one = self.on_io(submitters(way.clone(), 1, jobs));
                let cpu = (cpu_time::of_process() - cpu).as_nanos() as f64 / jobs as f64;
                let two = self.on_io(submitters(way, 2, jobs));
                vec![
                    ("batch of 100", small),
                    ("batch", one),
                    ("batch cpu", cpu),
                    ("batch from two", two),
                ]
            }
            Measurement::Allocations => self.on_io(allocations(way, plan.large_batch)),
        }
    }
}

fn ns_each(start: Instant, jobs: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / jobs as f64
}

/// Wall time and CPU time of a trip, in ns.
async fn hot<O: Offload>(way: O, trips: usize, job: fn() -> u64) -> (f64, f64) {
    let cpu = cpu_time::of_process();
    let start = Instant::now();
    for _ in 0..trips {
        assert_eq!(way.offload(job).await, 1);
    }
    let ns = ns_each(start, trips);
    let cpu = cpu_time::of_process() - cpu;
    (ns, cpu.as_nanos() as f64 / trips as f64)
}

async fn with_mib<O: Offload>(way: O, trips: usize) -> (f64, usize) {
    let mut bytes = vec![1_u8; MIB];
    let start = Instant::now();
    for _ in 0..trips {
        bytes = way.offload(move || black_box(bytes)).await;
    }
    (ns_each(start, trips), bytes.len())
}

async fn cold<O: Offload>(way: O, trips: usize) -> (Vec<f64>, f64) {
    let mut each = Vec::with_capacity(trips);
    let cpu = cpu_time::of_process();
    for _ in 0..trips {
        tokio::time::sleep(GAP).await;
        let start = Instant::now();
        assert_eq!(way.offload_urgent(|| black_box(1_u64)).await, 1);
        each.push(ns_each(start, 1));
    }
    let cpu = cpu_time::of_process() - cpu;
    (each, cpu.as_nanos() as f64 / trips as f64)
}

/// The trips, and how much of the lane's time the load has used meanwhile.
async fn busy<O: Offload>(way: O, with: Load, trips: usize) -> (Vec<f64>, f64) {
    let over = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicUsize::new(0));
    let (full, is_full) = tokio::sync::oneshot::channel();
    let load = tokio::spawn(load(way.clone(), with, over.clone(), done.clone(), full));
    is_full.await.unwrap();
    let mut each = Vec::with_capacity(trips);
    let (begin, before) = (Instant::now(), done.load(Relaxed));
    for _ in 0..trips {
        // Without a gap, the moments in which the load is late would give many
        // quick trips, and count for more than the others.
        tokio::time::sleep(GAP).await;
        let start = Instant::now();
        assert_eq!(way.offload_urgent(|| black_box(1_u64)).await, 1);
        each.push(ns_each(start, 1));
    }
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

async fn submitters<O: Offload>(way: O, submitters: usize, jobs: usize) -> f64 {
    let start = Instant::now();
    let others: Vec<_> = (1..submitters)
        .map(|_| {
            let way = way.clone();
            tokio::spawn(async move { batch(&way, jobs / submitters).await })
        })
        .collect();
    batch(&way, jobs / submitters).await;
    for other in others {
        other.await.unwrap();
    }
    ns_each(start, jobs / submitters * submitters)
}

async fn batch<O: Offload>(way: &O, jobs: usize) {
    submit_and_await(way, jobs, Vec::with_capacity(jobs), |way, i, jobs| {
        // Two words, so that nobody gets away without room for captures.
        way.offload(move || black_box(i) + black_box(jobs))
    })
    .await;
}

async fn submit_and_await<O, F>(
    way: &O,
    jobs: usize,
    mut tasks: Vec<F>,
    submit: impl Fn(&O, usize, usize) -> F,
) where
    F: Future<Output = usize>,
{
    tasks.extend((0..jobs).map(|i| submit(way, i, jobs)));
    for (i, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.await, i + jobs);
    }
}

async fn allocations<O: Offload>(way: O, jobs: usize) -> Found {
    let session = Session::new().no_stdout().no_file();
    let batch = session.operation("batch");
    let room = Vec::with_capacity(jobs);
    {
        let _span = batch.measure_process().iterations(jobs as u64);
        submit_and_await(&way, jobs, room, |way, i, jobs| {
            way.offload(move || black_box(i) + black_box(jobs))
        })
        .await;
    }
    let trips = session.operation("hot");
    {
        let _span = trips.measure_process().iterations(jobs as u64);
        hot(way, jobs, || black_box(1)).await;
    }
    let report = session.to_report();
    let of = |name: &str| {
        let mut found = report.operations().filter(|(found, _)| *found == name);
        let (_, operation) = found.next().expect("it was measured above");
        let each = |figure: Option<f64>| figure.expect("it has iterations");
        (each(operation.allocations()), each(operation.bytes()))
    };
    let ((batch, batch_bytes), (hot, hot_bytes)) = (of("batch"), of("hot"));
    vec![
        ("allocations, batch", batch),
        ("bytes, batch", batch_bytes),
        ("allocations, hot", hot),
        ("bytes, hot", hot_bytes),
    ]
}
