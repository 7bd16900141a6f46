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

/// In ms; one of them has as large a part in the work as another.
pub const LENGTHS: [(&str, &[f64]); 5] = [
    ("0.1ms", &[0.1]),
    ("1ms", &[1.0]),
    ("5ms", &[5.0]),
    ("20ms", &[20.0]),
    ("mix", &[0.1, 5.0, 20.0]),
];
const MOST: usize = 64;

/// Comes as a task of the I/O lane.
pub struct Arrivals {
    ended: Arc<AtomicU64>,
    lane: Arc<Lane>,
    task: JoinHandle<()>,
    in_flight: Arc<AtomicUsize>,
}

impl Arrivals {
    /// `load`: of what the cores can do. `work`: of a millisecond.
    pub fn start(io: &Handle, lane: Lane, length: &str, load: f64, work: Work) -> Self {
        let (_, lengths) = LENGTHS.iter().find(|it| it.0 == length).unwrap();
        let ended = Arc::new(AtomicU64::new(0));
        let lane = Arc::new(lane);
        let in_flight = Arc::new(AtomicUsize::new(0));
        let task = io.spawn({
            let (ended, lane, in_flight) = (ended.clone(), lane.clone(), in_flight.clone());
            async move {
                let mut random = Rng::with_seed(7);
                // Per ms: each length has its part of the cores.
                let part = load * cores() as f64 / lengths.len() as f64;
                let rates: Vec<_> = lengths.iter().map(|length| part / length).collect();
                let rate: f64 = rates.iter().sum();
                let mut at = Instant::now();
                loop {
                    let wait = -(1.0 - random.f64()).ln() / rate;
                    at += Duration::from_secs_f64(wait / 1e3);
                    tokio::time::sleep_until(at.into()).await;
                    let mut which = random.f64() * rate;
                    let length = lengths.iter().zip(&rates).find(|(_, rate)| {
                        which -= **rate;
                        which <= 0.0
                    });
                    let length = length.map_or(lengths[0], |(length, _)| *length);
                    if in_flight.load(Relaxed) >= MOST * cores() {
                        continue;
                    }
                    in_flight.fetch_add(1, Relaxed);
                    let job = Work {
                        steps: (work.steps as f64 * length) as u64,
                    };
                    let done = (lane.submit)(job);
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
