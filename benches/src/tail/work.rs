//! A job of fixed work: the same number of the same steps for every contender, so that jobs a
//! second compare, and a job that is preempted is not shorter for it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// So many steps of a chain of arithmetic in which each needs the one before:
/// no memory, no system call, nothing to skip.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Work {
    pub steps: u64,
}

impl Work {
    /// Work that takes about `target` alone on a core: the best of many tries
    /// decides, since others can only make one slower. They are short, so that
    /// some of them fall between whatever else the machine does.
    pub fn calibrated(target: Duration) -> Self {
        let mut trial = Self { steps: 1 << 10 };
        while trial.timed() < target / 10 {
            trial.steps *= 2;
        }
        let best = trial.best_of(500);
        trial.times(target.as_secs_f64() / best.as_secs_f64())
    }

    pub fn run(self) {
        let mut x = black_box(1_u64);
        for _ in 0..self.steps {
            x = (x ^ (x >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        black_box(x);
    }

    /// Takes so many times as long as this.
    pub fn times(self, factor: f64) -> Self {
        Self {
            steps: (self.steps as f64 * factor) as u64,
        }
    }

    fn best_of(self, tries: u32) -> Duration {
        (0..tries).map(|_| self.timed()).min().unwrap_or_default()
    }

    fn timed(self) -> Duration {
        let start = Instant::now();
        self.run();
        start.elapsed()
    }
}
