//! What the rest of the machine did meanwhile: a total, or a tail, of a run
//! that had to share its cores says little.

use std::time::Instant;

/// The kernel's unit in both files below, on every Linux of today.
const TICKS_PER_SECOND: f64 = 100.0;

/// The books at the start of a run.
pub struct Others {
    since: Instant,
    ticks: Option<f64>,
}

impl Others {
    pub fn now() -> Self {
        Self {
            since: Instant::now(),
            ticks: ticks(),
        }
    }

    /// Cores that others had on average since then: other processes, and a
    /// hypervisor. `None` where the system doesn't tell.
    pub fn cores(&self) -> Option<f64> {
        let seconds = (ticks()? - self.ticks?) / TICKS_PER_SECOND;
        Some((seconds / self.since.elapsed().as_secs_f64()).max(0.0))
    }
}

/// The machine's busy time without ours and that of the children we waited for.
fn ticks() -> Option<f64> {
    let machine = std::fs::read_to_string("/proc/stat").ok()?;
    let fields: Option<Vec<f64>> = machine
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .take(8)
        .map(|field| field.parse().ok())
        .collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal] = fields?[..] else {
        return None;
    };
    let ours = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name, in parentheses, may contain anything; utime, stime, cutime and
    // cstime are the 14th to 17th field, and the first after the name is the third.
    let after_name = ours.rsplit_once(')')?.1.split_whitespace();
    let ours: f64 = after_name
        .skip(11)
        .take(4)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    Some(user + nice + system + irq + softirq + steal - ours)
}
