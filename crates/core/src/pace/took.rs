//! [`Took`]: how long a step took. The worker measures it once, and gives it to all that ask: the
//! histograms, the call site, the limit in time, the shares of the threads, and the order of keys.
//!
//! A *step* is the run of a closure, or one poll of a future. Three times say how long it is:
//!
//! - It **ran** from its begin to its end. Histograms and call sites show that.
//! - It **held** its thread from the pop to the end: the pause for a CPU quota comes in addition. A
//!   job that is queued waits for this, so it is what the limit in time counts.
//! - It **computed** for as long as the thread had a core: its CPU time, and at least an eighth of
//!   what it ran, since a step that sleeps keeps its thread from others. Which call sites are
//!   short goes by this, and so do the shares: what the kernel gives to other threads is no
//!   fault of the step. Where the platform tells no CPU time, it is what the step ran.
//!
//! For example, a closure waits 1 ms for the quota, sleeps 70 ms, computes 5 ms, and another process
//! has its core for 5 ms: it ran 80 ms, held its thread for 81, and computed 10.

use std::cell::Cell;
use std::time::Duration;

use super::clock::now;

/// A step that sleeps counts as one that computes for a part of that time.
const BUSY: u32 = 8;
/// Reading the CPU time takes 0.4 µs. So one reading is used again for that long, in nanoseconds: of
/// steps that are shorter, the one that finds it too old has computed for those before it.
const YOUNG: u64 = 10_000;

thread_local! {
    /// When this thread's CPU time was read last, and what it was.
    static LAST: Cell<Option<(u64, Duration)>> = const { Cell::new(None) };
}

/// A step that runs.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) began: u64,
    paused: Duration,
    cpu: Option<Duration>,
}

pub(crate) struct Took {
    pub(crate) ran: Duration,
    pub(crate) held: Duration,
    pub(crate) computed: Duration,
}

impl Step {
    /// `paused`: for the CPU quota, after the pop.
    #[cold]
    pub(crate) fn begin(paused: Duration) -> Self {
        let began = now();
        Self {
            began,
            paused,
            cpu: cpu_time(began),
        }
    }

    pub(crate) fn end(self) -> Took {
        let now = now();
        let ran = Duration::from_nanos(now.saturating_sub(self.began));
        let cpu = self.cpu.zip(cpu_time(now));
        let cpu = cpu.map(|(begun, now)| now.saturating_sub(begun));
        Took {
            ran,
            held: self.paused + ran,
            computed: computed(ran, cpu),
        }
    }
}

fn computed(ran: Duration, cpu: Option<Duration>) -> Duration {
    cpu.map_or(ran, |cpu| cpu.max(ran / BUSY))
}

fn cpu_time(now: u64) -> Option<Duration> {
    let is_young = |(at, _): &(u64, _)| now.saturating_sub(*at) < YOUNG;
    if let Some((_, cpu)) = LAST.get().filter(is_young) {
        return Some(cpu);
    }
    let cpu = giveway::cpu_time()?;
    LAST.set(Some((now, cpu)));
    Some(cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_waits_counts_an_eighth_of_its_time() {
        let [tiny, long] = [20, 100_000].map(Duration::from_micros);
        assert_eq!(computed(tiny, Some(tiny)), tiny);
        assert_eq!(computed(8 * tiny, Some(tiny)), tiny);
        assert_eq!(computed(long, Some(tiny)), long / 8);
        assert_eq!(computed(long, Some(long)), long);
        assert_eq!(computed(long, None), long);
    }

    #[test]
    fn a_step_knows_how_long_it_held_its_thread() {
        let hour = Duration::from_secs(3600);
        let took = Step::begin(hour).end();
        assert_eq!(took.held, hour + took.ran);
        assert!(took.computed < hour);
    }
}
