//! The ten tenants.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::Semaphore;
use tokio::time::{sleep_until, timeout_at};
use twolane::{CpuRuntime, Handle, Priority};
use twolane_benches::findings::empty_histogram;
use twolane_benches::tail::work::Work;
use twolane_benches::{Sample, cores, io_runtime, lane};

const TENANTS: usize = 10;
/// A client waits for so long.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Alone,
    Fifo,
    MaxWait,
    Semaphores,
    Fair,
}

impl Way {
    pub const ALL: [(&str, Self); 5] = [
        ("alone", Self::Alone),
        ("fifo", Self::Fifo),
        ("max_wait", Self::MaxWait),
        ("semaphores", Self::Semaphores),
        ("fair", Self::Fair),
    ];
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lengths {
    Same,
    LongFlood,
    Mixed,
}

impl Lengths {
    /// In microseconds.
    fn pick(self, floods: bool) -> u64 {
        match (self, floods) {
            (Self::Same, _) => 5_000,
            (Self::LongFlood, true) => 20_000,
            (Self::LongFlood, false) => 1_000,
            (Self::Mixed, _) => fastrand::u64(1_000..=20_000),
        }
    }

    fn mean(self, floods: bool) -> f64 {
        match (self, floods) {
            (Self::Mixed, _) => 0.0105,
            _ => self.pick(floods) as f64 / 1e6,
        }
    }
}

#[derive(Clone, Copy)]
pub struct Load {
    pub lengths: Lengths,
    /// What each of the nine submits, of what the lane can do.
    pub each: f64,
    pub warm_up: Duration,
    pub counted: Duration,
}

/// The lane, by one of the ways.
enum Lane {
    Plain(Handle),
    Semaphores(Handle, Vec<Arc<Semaphore>>),
    Fair(Vec<Handle>),
}

impl Lane {
    fn new(cpu: &CpuRuntime, way: Way) -> Self {
        let cpu = cpu.handle().clone();
        let permits = || Arc::new(Semaphore::new(cpu.worker_threads()));
        match way {
            Way::Semaphores => {
                let each = (0..TENANTS).map(|_| permits()).collect();
                Self::Semaphores(cpu, each)
            }
            Way::Fair => {
                let each = (0..TENANTS).map(|tenant| cpu.with_key(tenant.to_string()));
                Self::Fair(each.collect())
            }
            _ => Self::Plain(cpu),
        }
    }

    /// Whether the job has run.
    async fn run(&self, tenant: usize, job: impl FnOnce() + Send + 'static) -> bool {
        match self {
            Self::Plain(cpu) => cpu.spawn_cpu(job).await.is_ok(),
            Self::Semaphores(cpu, each) => {
                let Ok(_permit) = each[tenant].acquire().await else {
                    return false;
                };
                cpu.spawn_cpu(job).await.is_ok()
            }
            Self::Fair(fair) => fair[tenant].spawn_cpu(job).await.is_ok(),
        }
    }
}

struct Counts {
    nine: Mutex<Histogram<u64>>,
    unanswered: AtomicU64,
    /// Microseconds.
    computed: AtomicU64,
}

impl Load {
    pub const KINDS: [(&str, Lengths, f64); 4] = [
        ("same", Lengths::Same, 0.05),
        ("same, at a tenth", Lengths::Same, 0.1),
        ("long flood", Lengths::LongFlood, 0.05),
        ("mixed", Lengths::Mixed, 0.05),
    ];

    /// `us`: what takes a microsecond.
    pub fn run(self, way: Way, us: Work) -> Sample {
        let io = io_runtime(2);
        let wait = Duration::from_millis(500);
        let cpu = lane(io.handle(), |lane| match way {
            Way::MaxWait => lane.max_wait(Priority::Normal, wait),
            _ => lane,
        });
        let lane = Arc::new(Lane::new(&cpu, way));
        let counts = Arc::new(Counts {
            nine: Mutex::new(empty_histogram()),
            unanswered: AtomicU64::new(0),
            computed: AtomicU64::new(0),
        });
        let from = Instant::now() + self.warm_up;
        let first = usize::from(way == Way::Alone);
        io.block_on(async {
            for tenant in first..TENANTS {
                tokio::spawn(self.submit(tenant, lane.clone(), counts.clone(), from, us));
            }
            sleep_until((from + self.counted).into()).await;
        });
        let computed = counts.computed.load(Relaxed) as f64 / 1e6;
        cpu.shutdown().wait();
        io.shutdown_background();
        let work = computed / self.counted.as_secs_f64() / cores() as f64;
        let mut sample = Sample::of("work", "", work);
        let nine = counts.nine.lock().unwrap().clone();
        let unanswered = counts.unanswered.load(Relaxed) as f64;
        let requests = unanswered + nine.len() as f64;
        sample.put("unanswered", "", unanswered / requests.max(1.0));
        if !nine.is_empty() {
            sample.put_latencies("nine", nine);
        }
        sample
    }

    /// Tenant 0 is the flood. Ends with the runtime.
    async fn submit(
        self,
        tenant: usize,
        lane: Arc<Lane>,
        counts: Arc<Counts>,
        from: Instant,
        us: Work,
    ) {
        let floods = tenant == 0;
        let load = if floods { 10.0 } else { self.each };
        let per_second = load * cores() as f64 / self.lengths.mean(floods);
        let mut due = Instant::now();
        while due < from + self.counted {
            due += Duration::from_secs_f64(-(1.0 - fastrand::f64()).ln() / per_second);
            sleep_until(due.into()).await;
            let length = self.lengths.pick(floods);
            let work = us.times(length as f64);
            let (lane, counts) = (lane.clone(), counts.clone());
            tokio::spawn(async move {
                let (counts_work, end) = (counts.clone(), from + self.counted);
                let job = move || {
                    work.run();
                    if (from..end).contains(&Instant::now()) {
                        counts_work.computed.fetch_add(length, Relaxed);
                    }
                };
                let answered = timeout_at((due + PATIENCE).into(), lane.run(tenant, job)).await;
                if floods || due < from {
                } else if answered == Ok(true) {
                    let mut nine = counts.nine.lock().unwrap();
                    nine.saturating_record(due.elapsed().as_nanos() as u64);
                } else {
                    counts.unanswered.fetch_add(1, Relaxed);
                }
            });
        }
    }
}
