//! Does code without a name compute on a worker, and keep the runtime from its sockets and timers?
//!
//! Such code says nothing of itself: a long poll of it cannot be told from many short ones. A worker of Tokio
//! turns to the driver of sockets and timers when it has no task left, and after each 61 tasks. While it does
//! not, it *stands*. (One with many polls of some 10 µs turns to it each millisecond. It is busy, and computes
//! nothing.) It does harm in two cases:
//!
//! - it stands for the threshold, and **probes are late**: what they have waited in the last second adds up to
//!   twice the threshold (`probe.rs`);
//! - it stands for a second. Another worker may be free meanwhile, and no probe late.
//!
//! Which thread that is Tokio does not tell. So each worker is blamed that has computed for three quarters of
//! that time, as far as it had a core, without its polls that have a name ([`computed`]). While a
//! thread of the runtime is in a poll with a name, that may be what the probe waits for, and nobody is blamed;
//! nor is the thread of a `current_thread` runtime, which may compute outside of `block_on`. On a full machine
//! the thread that takes over the worker of one in `block_in_place` may begin late: then the one in there is
//! blamed.
//!
//! On a full machine a worker may also stand because its thread has no core, while another one is busy, and turns
//! to the driver all the time. If that may be so (`Run::may_lack_core`), only what was computed since *any* worker
//! has turned to it is blamed, until one has stood for a second.
//!
//! As in `detect.rs`, only what the thread itself has computed counts: on a machine that is full, a probe is
//! late without it.

use std::mem;
use std::time::{Duration, Instant};

use tokio::runtime::RuntimeMetrics;

use crate::detect::Stuck;
use crate::ended::History;
use crate::stall::Cause;

/// So long a worker may stand if no probe is late; and so often a thread is blamed.
pub(crate) const LONG: Duration = Duration::from_secs(1);

/// When each worker has last turned to the driver.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// How often it has parked and gone on (odd while it is parked), and for how long it was busy, to which
    /// Tokio adds each time that it parks or has run 61 tasks; and the look that found these first.
    workers: Vec<((u64, Duration), Instant)>,
}

impl Turns {
    /// Since when the worker stands that is the first to. `None`: all are parked.
    pub(crate) fn stand_since(&mut self, now: Instant, of: &RuntimeMetrics) -> Option<Instant> {
        self.workers
            .resize(of.num_workers(), ((0, Duration::ZERO), now));
        for (worker, (turn, at)) in self.workers.iter_mut().enumerate() {
            let parks = of.worker_park_unpark_count(worker);
            let new = (parks, of.worker_total_busy_duration(worker));
            if mem::replace(turn, new) != new {
                *at = now;
            }
        }
        self.awake().min()
    }

    /// Since when each worker stands that is awake.
    pub(crate) fn awake(&self) -> impl Iterator<Item = Instant> {
        let awake = self.workers.iter().filter(|((parks, _), _)| parks % 2 == 0);
        awake.map(|(_, at)| *at)
    }

    /// Since when no worker has turned to the driver.
    pub(crate) fn last(&self) -> Option<Instant> {
        self.workers.iter().map(|(_, at)| *at).max()
    }
}

/// Whether a worker does harm that stands for so long.
pub(crate) fn does_harm(stands: Duration, threshold: Duration, are_probes_late: bool) -> bool {
    stands >= threshold && (are_probes_late || stands >= LONG)
}

/// Whether a thread has computed since then, as far as its looks are kept, up to the last of them.
pub(crate) fn computed(stand: Instant, threshold: Duration, history: &History) -> Option<Stuck> {
    let [(looked, before), (now, after)] = history.since(stand)?;
    let since = stand.max(looked);
    let named = after.named.saturating_sub(before.named);
    // What came before is at most the time up to it.
    let others = before.on_cpu + named + (since - looked);
    let own = after.on_cpu.saturating_sub(others);
    let queued = after.queued.saturating_sub(before.queued);
    let could = (now - since).saturating_sub(queued);
    let cause = Cause::Computes;
    (own >= threshold && 4 * own >= 3 * could).then_some(Stuck { since, own, cause })
}

/// Whether a thread had a core for less than half of the time since then, and has not computed with what it got,
/// in polls with a name or without. (The kernel counts the time in the queue for a core when that ends.)
pub(crate) fn lacks_core(stand: Instant, threshold: Duration, history: &History) -> bool {
    let Some([(looked, before), (now, after)]) = history.since(stand) else {
        return false;
    };
    let on_cpu = after.on_cpu.saturating_sub(before.on_cpu);
    let queued = after.queued.saturating_sub(before.queued);
    let could = (now - looked).saturating_sub(queued);
    let computed = on_cpu >= threshold && 4 * on_cpu >= 3 * could;
    2 * on_cpu < now - looked && !computed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Times;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Of looks each 10 ms, a hundred: between two it computes for so many milliseconds, so many of them in
    /// polls with a name, and waits for a core for so many.
    fn told(computes: u64, named: u64, queued: u64) -> Option<u128> {
        let (begin, history) = looks(computes, named, queued);
        let found = computed(begin + ms(500), ms(25), &history);
        found.map(|stuck| stuck.own.as_millis())
    }

    fn looks(computes: u64, named: u64, queued: u64) -> (Instant, History) {
        let begin = Instant::now();
        let mut history = History::default();
        for look in 0..=100 {
            let (on_cpu, named, queued) = (computes * look, named * look, queued * look);
            let times = Times {
                on_cpu: ms(on_cpu),
                named: ms(named),
                queued: ms(queued),
                ..Times::default()
            };
            history.add(begin + ms(10 * look), times);
        }
        (begin, history)
    }

    #[test]
    fn who_had_a_core_for_less_than_half_of_the_time_lacks_one() {
        let lacks = |computes, named, queued| {
            let (begin, history) = looks(computes, named, queued);
            lacks_core(begin + ms(500), ms(25), &history)
        };
        assert!(lacks(0, 0, 0) && lacks(4, 0, 0));
        assert!(!lacks(5, 0, 0));
        assert!(!lacks(3, 0, 7), "it computes with what it gets");
        assert!(!lacks(4, 4, 6), "in polls with a name");
    }

    #[test]
    fn who_computes_while_it_can_is_told() {
        assert_eq!(told(10, 0, 0), Some(500));
        assert_eq!(told(8, 0, 0), Some(400));
        assert_eq!(told(7, 0, 0), None);
        // It has a third of a core.
        assert_eq!(told(3, 0, 6), Some(150));
        // It has none.
        assert_eq!(told(0, 0, 10), None);
    }

    #[test]
    fn who_does_in_polls_with_a_name_is_not() {
        assert_eq!(told(10, 2, 0), Some(400));
        assert_eq!(told(10, 3, 0), None);
        // They wait.
        assert_eq!(told(4, 10, 0), None);
    }

    #[test]
    fn what_was_before_does_not_count() {
        let begin = Instant::now();
        let mut history = History::default();
        let mut look = |at, on_cpu| {
            let on_cpu = ms(on_cpu);
            let times = Times::default();
            history.add(begin + ms(at), Times { on_cpu, ..times });
            computed(begin + ms(190), ms(25), &history).map(|stuck| stuck.own.as_millis())
        };
        assert_eq!(look(0, 0), None);
        assert_eq!(look(250, 190), None);
        assert_eq!(look(290, 290), Some(100));
    }

    #[test]
    fn a_worker_may_stand_for_a_second_if_no_probe_is_late() {
        let does_harm = |stands, late| does_harm(ms(stands), ms(25), late);
        assert!(does_harm(25, true) && !does_harm(24, true));
        assert!(does_harm(1_000, false) && !does_harm(999, false));
    }
}
