//! Decides whether a poll that is over was stuck, by what its thread has noted at its end
//! (`record.rs`), and by the kernel's times of the thread before it.
//!
//! As in `detect.rs`, nothing is blamed for what others took: only the poll's own time counts. What
//! the kernel tells is of the thread, at a look before the poll and at its end, and so it is of
//! earlier polls as well. The time in the queue for a core may be overestimated, and the poll be left
//! out; and where earlier polls computed, one that blocks and that no look has seen may pass for one
//! that computes. It has waited only if the watch had its looks in time meanwhile: a machine that
//! stands still is no poll that blocks. Nor is a core that the host of a virtual machine keeps
//! (`stolen.rs`): what it may have kept from some time before the poll on is left out of what the poll
//! has not surely computed.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::kernel::{self, Doing, Times};
use crate::record::Ended;
use crate::stall::Cause;

/// Of looks before the last second, one is kept.
const KEPT: Duration = Duration::from_secs(1);

/// The kernel's times of a thread, as the last looks found them.
#[derive(Debug, Default)]
pub(crate) struct History(VecDeque<(Instant, Times)>);

impl History {
    pub(crate) fn add(&mut self, now: Instant, times: Times) {
        while self.0.get(1).is_some_and(|(at, _)| now - *at > KEPT) {
            self.0.pop_front();
        }
        self.0.push_back((now, times));
    }

    /// Whether the last look is a second ago.
    pub(crate) fn is_old(&self, now: Instant) -> bool {
        self.0.back().is_none_or(|(at, _)| now - *at > KEPT)
    }

    /// The last look before that, or else the first that is kept; and the last.
    pub(crate) fn since(&self, begun: Instant) -> Option<[(Instant, Times); 2]> {
        let before = self.before(begun).or(self.0.front().copied())?;
        Some([before, *self.0.back()?])
    }

    /// The last look before that.
    pub(crate) fn before(&self, begun: Instant) -> Option<(Instant, Times)> {
        let mut looks = self.0.iter().rev();
        looks.find(|(at, _)| *at <= begun).copied()
    }
}

/// Its own time, and the cause. `doing`: what a look has found it at. `in_time`: since then the
/// watch has looked in time. `stolen`: by now.
pub(crate) fn own_time(
    ended: &Ended,
    history: &History,
    doing: Option<Doing>,
    in_time: Instant,
    stolen: Duration,
) -> Option<(Duration, Cause)> {
    let is_late = ended.begun < in_time;
    let Some(after) = ended.times else {
        // Elsewhere than on Linux.
        let is_known = !is_late && !kernel::tells_times();
        return is_known.then_some((ended.took, Cause::Unknown));
    };
    let (looked, before) = history.before(ended.begun)?;
    let own = ended
        .took
        .checked_sub(after.queued.saturating_sub(before.queued))?;
    // From the look on. What came before the poll is at most the time up to it.
    let computed = after.on_cpu.saturating_sub(before.on_cpu);
    let least = computed.saturating_sub(ended.begun - looked);
    let stolen = stolen.saturating_sub(before.stolen);
    let own = own.saturating_sub(stolen).max(least.min(own));
    let most = computed.min(own);
    let cause = match doing {
        Some(Doing::Waits(call)) if 2 * least <= own => Cause::Blocks(call),
        _ if 2 * most < own => Cause::Blocks(None),
        _ => Cause::Computes,
    };
    let own = if is_late { least.min(own) } else { own };
    Some((own, cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn times(on_cpu: u64, queued: u64) -> Times {
        Times {
            on_cpu: ms(on_cpu),
            queued: ms(queued),
            ..Times::default()
        }
    }

    /// A poll of 20 ms, 10 ms after a look.
    fn found(on_cpu: u64, queued: u64, doing: Option<Doing>, late: bool) -> (u128, Cause) {
        found_with(on_cpu, queued, doing, late, 0)
    }

    fn found_with(
        on_cpu: u64,
        queued: u64,
        doing: Option<Doing>,
        late: bool,
        stolen: u64,
    ) -> (u128, Cause) {
        let looked = Instant::now();
        let mut history = History::default();
        let before = Times {
            stolen: ms(70),
            ..times(100, 50)
        };
        history.add(looked, before);
        let begun = looked + ms(10);
        history.add(begun + ms(5), times(1_000, 1_000));
        let ended = Ended {
            activity: Record::activity_for_tests(),
            begun,
            took: ms(20),
            runtime: None,
            times: Some(times(100 + on_cpu, 50 + queued)),
        };
        let in_time = if late { begun + ms(1) } else { looked };
        let (own, cause) = own_time(&ended, &history, doing, in_time, ms(70 + stolen)).unwrap();
        (own.as_millis(), cause)
    }

    #[test]
    fn its_own_time_is_what_it_computed_and_waited() {
        let read = Some("read");
        assert_eq!(found(20, 0, None, false), (20, Cause::Computes));
        assert_eq!(found(30, 0, None, false), (20, Cause::Computes));
        assert_eq!(found(5, 15, None, false), (5, Cause::Computes));
        assert_eq!(
            found(30, 0, Some(Doing::Waits(read)), false),
            (20, Cause::Computes)
        );
        assert_eq!(found(1, 0, None, false), (20, Cause::Blocks(None)));
        let doing = Some(Doing::Waits(read));
        assert_eq!(found(15, 0, doing, false), (20, Cause::Blocks(read)));
    }

    #[test]
    fn what_the_host_took_is_not_its_own() {
        assert_eq!(found_with(1, 0, None, false, 10).0, 10);
        assert_eq!(found_with(5, 0, None, false, 15), (5, Cause::Computes));
        // Half of what it computed is known to be the poll's.
        assert_eq!(found_with(20, 0, None, false, 15), (10, Cause::Computes));
    }

    #[test]
    fn no_wait_counts_while_the_watch_is_late() {
        // Up to 10 ms of what it computed may have been before the poll.
        assert_eq!(found(1, 0, None, true), (0, Cause::Blocks(None)));
        assert_eq!(found(12, 0, None, true), (2, Cause::Computes));
        assert_eq!(found(28, 0, None, true), (18, Cause::Computes));
    }

    #[test]
    fn the_look_before_it_counts() {
        let (begin, mut history) = (Instant::now(), History::default());
        assert!(history.before(begin).is_none());
        for seconds in 0..10 {
            history.add(begin + ms(1_000 * seconds), times(seconds, 0));
        }
        let before = |at: u64| {
            history
                .before(begin + ms(at))
                .map(|(_, times)| times.on_cpu)
        };
        assert_eq!(before(9_500), Some(ms(9)));
        assert_eq!(before(8_500), Some(ms(8)));
        assert_eq!(before(6_500), None, "it is forgotten");
    }
}
