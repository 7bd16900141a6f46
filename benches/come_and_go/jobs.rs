//! Jobs that come at random.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use twolane_benches::cores;
use twolane_benches::tail::work::Work;

use crate::lanes::Lane;

const MOST: usize = 64;

/// Comes as a task of the I/O lane.
pub struct Arrivals {
    ended: Arc<AtomicU64>,
    lane: Arc<Lane>,
    task: JoinHandle<()>,
    in_flight: Arc<AtomicUsize>,
}

impl Arrivals {
    /// One each `gap`, on average.
    pub fn start(io: &Handle, lane: Lane, job: Work, gap: Duration) -> Self {
        let ended = Arc::new(AtomicU64::new(0));
        let lane = Arc::new(lane);
        let in_flight = Arc::new(AtomicUsize::new(0));
        let task = io.spawn({
            let (ended, lane, in_flight) = (ended.clone(), lane.clone(), in_flight.clone());
            async move {
                let mut random = Rng::with_seed(7);
                let mut at = Instant::now();
                loop {
                    at += gap.mul_f64(-(1.0 - random.f64()).ln());
                    tokio::time::sleep_until(at.into()).await;
                    if in_flight.load(Relaxed) >= MOST * cores() {
                        continue;
                    }
                    in_flight.fetch_add(1, Relaxed);
                    let done = lane(job);
                    let (ended, in_flight) = (ended.clone(), in_flight.clone());
                    tokio::spawn(async move {
                        done.await;
                        ended.fetch_add(1, Relaxed);
                        in_flight.fetch_sub(1, Relaxed);
                    });
                }
            }
        });
        Self {
            ended,
            lane,
            task,
            in_flight,
        }
    }

    pub fn ended(&self) -> u64 {
        self.ended.load(Relaxed)
    }

    /// Lets those under way end, then takes the lane down.
    pub fn stop(self) {
        self.task.abort();
        while !self.task.is_finished() || self.in_flight.load(Relaxed) > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(self.lane);
    }
}
