//! Time of day, which the servers' processes tell too, and work that takes a known time.

use std::hint::black_box;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What a job does on its thread for some time: it computes, or whatever a test wants.
#[derive(Clone)]
pub struct Work(Arc<dyn Fn(Duration) + Send + Sync>);

impl Work {
    pub fn new(work: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Self(Arc::new(work))
    }

    pub fn computing() -> Self {
        Self::new(compute)
    }

    pub fn of(&self, time: Duration) {
        (self.0)(time);
    }
}

/// Microseconds since 1970.
pub fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("it is later").as_micros() as i64
}

/// Rounds of the loop that take a millisecond.
static ROUNDS_PER_MS: OnceLock<u64> = OnceLock::new();

/// Measures how fast this machine computes. Call it while the machine is idle.
pub fn calibrate() {
    ROUNDS_PER_MS.get_or_init(|| {
        let rounds = 1 << 22;
        let took = (0..5).map(|_| {
            let start = Instant::now();
            rounds_of_work(rounds);
            start.elapsed()
        });
        // The least disturbed.
        let took = took.min().expect("there are five");
        (rounds as f64 / (took.as_secs_f64() * 1e3)) as u64
    });
}

/// Computes for so long, if it has a core to itself.
fn compute(time: Duration) {
    calibrate();
    let per_ms = *ROUNDS_PER_MS.get().expect("it is calibrated");
    rounds_of_work((time.as_secs_f64() * 1e3 * per_ms as f64) as u64);
}

fn rounds_of_work(rounds: u64) {
    let mut state = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..rounds {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
}
