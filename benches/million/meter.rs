//! Reads memory and clocks around the jobs of this process.

use std::time::{Duration, Instant};

use alloc_tracker::{ProcessSpan, Session};

use crate::sample::Sample;
use crate::support::cpu_time;

pub struct Meter {
    count: usize,
    resident: u64,
    session: Session,
    /// Ends with the figures of memory.
    allocations: Option<ProcessSpan>,
    cpu: Duration,
    start: Instant,
    submit: Option<Duration>,
    with_all_waiting: Option<u64>,
}

impl Meter {
    /// To be called when the threads are up, and before anything that is the
    /// jobs' own is made.
    pub fn start(count: usize) -> Self {
        let session = Session::new().no_stdout().no_file();
        let operation = session.operation("jobs");
        let span = operation.measure_process().iterations(count as u64);
        Self {
            count,
            resident: resident("VmRSS"),
            allocations: Some(span),
            session,
            cpu: cpu_time::of_process(),
            start: Instant::now(),
            submit: None,
            with_all_waiting: None,
        }
    }

    pub fn all_submitted(&mut self) {
        self.submit = Some(self.start.elapsed());
    }

    /// All are queued or parked. Those that sleep are never known to be asleep
    /// all at once; without this call the peak counts.
    pub fn all_wait(&mut self) {
        self.with_all_waiting = Some(resident("VmRSS"));
        self.allocations = None;
    }

    pub fn end(mut self) -> Sample {
        let wall = self.start.elapsed();
        let cpu = cpu_time::of_process() - self.cpu;
        self.allocations = None;
        let resident = self.with_all_waiting.unwrap_or_else(|| resident("VmHWM"));
        let report = self.session.to_report();
        let (_, allocations) = report.operations().next().expect("one was measured");
        Sample {
            count: self.count as f64,
            submit: self.submit.expect("all were submitted").as_secs_f64(),
            wall: wall.as_secs_f64(),
            cpu: cpu.as_secs_f64(),
            resident: resident as f64 - self.resident as f64,
            allocations: Some(allocations.total_allocations_count() as f64),
            allocated: Some(allocations.total_bytes_allocated() as f64),
            // Better seen from outside.
            others: None,
        }
    }
}

/// A field of `/proc/self/status` that is in kB, in bytes. `statm` has the same
/// counter, in pages, and no peak.
fn resident(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| {
        let line = line.strip_prefix(':')?.strip_suffix("kB")?;
        line.trim().parse::<u64>().ok()
    });
    kilobytes.unwrap_or_else(|| panic!("no {field} in /proc/self/status")) << 10
}
