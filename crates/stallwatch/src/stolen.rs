//! What the host of a virtual machine keeps of its cores: "steal" in `/proc/stat`.
//!
//! A thread whose core the host keeps has neither computed nor was it in a queue, as the kernel counts:
//! it looks as if it had waited. Which core a thread was on the kernel does not tell afterwards. So the
//! watch takes it to have lost what the core has that lost most.

use std::fs;
use std::time::{Duration, Instant};

/// From one time that the kernel is asked to the next. It writes a line for each core and each
/// interrupt: 30 microseconds of two cores.
const PACE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Stolen {
    asked: Option<Instant>,
    /// Of each core, in ticks.
    cores: Vec<u64>,
    /// Of the core that lost most, from each time that the kernel was asked to the next.
    most: Duration,
}

impl Stolen {
    /// What a thread is taken to have lost, as it was a second ago or later. What matters is how it
    /// grows.
    pub(crate) fn lately(&mut self, now: Instant) -> Duration {
        if self.asked.is_none_or(|asked| now - asked >= PACE) {
            self.ask(now);
        }
        self.most
    }

    /// The same by now.
    pub(crate) fn by(&mut self, now: Instant) -> Duration {
        if self.asked != Some(now) {
            self.ask(now);
        }
        self.most
    }

    fn ask(&mut self, now: Instant) {
        self.asked = Some(now);
        // If it can't be read now, it is next time. Elsewhere than on Linux it is never.
        if let Ok(text) = fs::read_to_string("/proc/stat") {
            self.note(parse(&text));
        }
    }

    fn note(&mut self, cores: Vec<u64>) {
        /// Of a tick. Linux tells its users hundredths of a second, whatever its own are.
        const MS: u64 = 10;
        let grown = cores.iter().zip(&self.cores);
        let most = grown.map(|(now, before)| now.saturating_sub(*before)).max();
        self.most += Duration::from_millis(MS * most.unwrap_or(0));
        self.cores = cores;
    }
}

/// `cpu0 user nice system idle iowait irq softirq steal ..`; the line without a number is their sum.
fn parse(text: &str) -> Vec<u64> {
    let cores = text.lines().filter_map(|line| line.strip_prefix("cpu"));
    let each = cores.filter(|line| !line.starts_with(' '));
    let steal = |line: &str| line.split_ascii_whitespace().nth(8)?.parse().ok();
    each.map(|line| steal(line).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_is_the_core_that_lost_most() {
        let mut stolen = Stolen::default();
        let text = |one: u64, other: u64| {
            format!(
                "cpu  1 2 3 4 5 6 7 {} 0 0\ncpu0 1 1 1 1 1 1 1 {one} 0 0\n\
                 cpu1 1 1 1 1 1 1 1 {other} 0 0\nintr 8 9\n",
                one + other
            )
        };
        let mut lost = |one, other| {
            let before = stolen.most;
            stolen.note(parse(&text(one, other)));
            (stolen.most - before).as_millis()
        };
        assert_eq!(lost(800, 900), 0, "since the machine has begun");
        assert_eq!(lost(803, 901), 30);
        assert_eq!(lost(804, 905), 40);
        assert_eq!(lost(804, 905), 0);
    }
}
