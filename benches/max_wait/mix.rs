//! Short jobs of 0.5 ms and long ones of 20 ms on one lane with a limit in time, submitted in this
//! process: how many of those that were admitted waited for longer than they may.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::time::sleep_until;
use tower::BoxError;
use twolane::{Handle, Priority, Task};
use twolane_benches::findings::empty_histogram;
use twolane_benches::tail::work::Work;
use twolane_benches::{Sample, lane};

use crate::server::MAX_WAIT;

/// The loads of short and of long jobs, of what the threads can do.
pub const LOADS: [(f64, f64); 3] = [(0.5, 0.8), (0.8, 0.4), (0.3, 2.0)];
const SHORT: Duration = Duration::from_micros(500);
const LONG: Duration = Duration::from_millis(20);

#[derive(Clone, Copy)]
pub struct Mix {
    pub loads: (f64, f64),
    /// Else in FIFO order.
    pub short_first: bool,
    pub threads: usize,
    /// What takes a millisecond.
    pub ms: Work,
    pub warm_up: Duration,
    pub counted: Duration,
}

/// What became of the jobs of one kind.
struct Kind {
    handle: Handle,
    work: Work,
    mean: Duration,
    waits: Mutex<Histogram<u64>>,
    refused: Mutex<u64>,
}

impl Mix {
    pub fn run(self) -> Result<Sample, BoxError> {
        let runtime = tokio::runtime::Runtime::new()?;
        let lane = lane(runtime.handle(), |lane| {
            let lane = lane.max_wait(Priority::Normal, MAX_WAIT);
            lane.worker_threads(self.threads)
                .short_jobs_first(self.short_first)
        });
        let kind = |name, mean: Duration| {
            Arc::new(Kind {
                handle: lane.handle().with_name(name),
                work: self.ms.times(mean.as_secs_f64() * 1e3),
                mean,
                waits: Mutex::new(empty_histogram()),
                refused: Mutex::new(0),
            })
        };
        let (short, long) = (kind("short", SHORT), kind("long", LONG));
        runtime.block_on(async {
            tokio::join!(
                self.submit(short.clone(), self.loads.0),
                self.submit(long.clone(), self.loads.1)
            );
        });
        lane.shutdown().wait();
        let mut sample = Sample::default();
        for (name, kind) in [("short", short), ("long", long)] {
            let waits = kind.waits.lock().unwrap().clone();
            let (admitted, refused) = (waits.len(), *kind.refused.lock().unwrap());
            let in_time = waits.count_between(0, (MAX_WAIT * 12 / 10).as_nanos() as u64);
            let percent = |part: u64, of: u64| part as f64 * 100.0 / of.max(1) as f64;
            let late = percent(admitted - in_time, admitted);
            sample.put(format!("{name}_late"), "%", late);
            let refused = percent(refused, admitted + refused);
            sample.put(format!("{name}_refused"), "%", refused);
            sample.put_latencies(name, waits);
        }
        Ok(sample)
    }

    /// By chance, so that this part of the threads' time is asked for.
    async fn submit(self, kind: Arc<Kind>, load: f64) {
        let per_second = load * self.threads as f64 / kind.mean.as_secs_f64();
        let (begun, mut due) = (Instant::now(), Instant::now());
        while due < begun + self.warm_up + self.counted {
            sleep_until(due.into()).await;
            // What came while the timer slept.
            while due <= Instant::now() {
                let counts = due >= begun + self.warm_up;
                drop(tokio::spawn(kind.clone().ask(due, counts)));
                due += Duration::from_secs_f64(-(1.0 - fastrand::f64()).ln() / per_second);
            }
        }
    }
}

impl Kind {
    async fn ask(self: Arc<Self>, due: Instant, counts: bool) {
        let (kind, work) = (self.clone(), self.work);
        let job: Task<()> = self.handle.spawn_cpu(move || {
            let waited = due.elapsed().as_nanos() as u64;
            work.run();
            if counts {
                kind.waits.lock().unwrap().saturating_record(waited);
            }
        });
        if job.await.is_err() && counts {
            *self.refused.lock().unwrap() += 1;
        }
    }
}
