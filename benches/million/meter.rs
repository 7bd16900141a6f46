//! Reads memory and clocks around the jobs of this process.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use twolane_benches::{Sample, cpu_time};

/// Figures of all jobs of one process together. Go's program prints the same.
#[derive(Serialize, Deserialize)]
pub struct Measured {
    count: f64,
    /// Seconds from before the first submission until the last submission, and until
    /// the last one has been awaited.
    submit_s: f64,
    wall_s: f64,
    /// Seconds of CPU time meanwhile, all threads.
    cpu_s: f64,
    /// Bytes, with all of them queued or parked.
    resident_bytes: f64,
}

impl Measured {
    pub fn sample(self) -> Sample {
        let mut sample = Sample::of("submit", "s", self.submit_s);
        sample.put("wall", "s", self.wall_s);
        sample.put("cpu", "s", self.cpu_s);
        sample.put("resident", "MB", self.resident_bytes / 1e6);
        sample.put("resident_each", "B", self.resident_bytes / self.count);
        sample
    }
}

pub struct Meter {
    count: usize,
    resident: u64,
    cpu: Duration,
    start: Instant,
    submit: Duration,
    with_all_waiting: u64,
}

impl Meter {
    /// To be called when the threads are up, and before anything that is the jobs' own is made.
    pub fn start(count: usize) -> Self {
        Self {
            count,
            resident: resident(),
            cpu: cpu_time::of_process(),
            start: Instant::now(),
            submit: Duration::ZERO,
            with_all_waiting: 0,
        }
    }

    pub fn all_submitted(&mut self) {
        self.submit = self.start.elapsed();
    }

    /// All are queued or parked.
    pub fn all_wait(&mut self) {
        self.with_all_waiting = resident();
    }

    pub fn end(self) -> Measured {
        let wall = self.start.elapsed();
        let cpu = cpu_time::of_process() - self.cpu;
        Measured {
            count: self.count as f64,
            submit_s: self.submit.as_secs_f64(),
            wall_s: wall.as_secs_f64(),
            cpu_s: cpu.as_secs_f64(),
            resident_bytes: self.with_all_waiting as f64 - self.resident as f64,
        }
    }
}

/// Bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.expect("Linux says so").trim().parse::<u64>().unwrap() << 10
}
