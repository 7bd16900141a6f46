//! [`Unnamed`]: does code without a name compute on a worker, while a probe waits for the runtime?
//!
//! Such code says nothing of itself: a poll of it cannot be told from many short ones. But a probe that
//! waits for twice the threshold, while a worker does not park, tells that no worker had a turn for it,
//! and the kernel tells how long each of them has computed since it was sent. So a worker is blamed, once
//! for a probe, if that is the threshold or more, and nothing with a name has begun or ended on it
//! meanwhile. While a thread of the runtime is in a poll with a name, that may be what the probe waits
//! for, and nobody is blamed; nor is the thread of a `current_thread` runtime, which may compute outside
//! of `block_on`. On a full machine the thread that takes over the worker of one in `block_in_place` may
//! begin that late: then the one in there is blamed.
//!
//! As in `detect.rs`, only what the thread itself has computed counts: on a machine that is full, a
//! probe is late without it.

use std::time::{Duration, Instant};

use crate::detect::Stuck;
use crate::ended::History;
use crate::kernel::Times;
use crate::stall::Cause;

#[derive(Debug, Default)]
pub(crate) struct Unnamed {
    /// The count of the record, and the look that found it first.
    count: u64,
    since: Option<Instant>,
    /// When the probe was sent for which it was blamed.
    told: Option<Instant>,
}

impl Unnamed {
    /// A look at a worker whose record has this count. `probe`: when the one was sent that is late and
    /// not explained.
    pub(crate) fn look(
        &mut self,
        (now, threshold): (Instant, Duration),
        count: u64,
        probe: Option<Instant>,
        history: &History,
        times: impl FnOnce() -> Option<Times>,
    ) -> Option<Stuck> {
        if self.since.is_none() || self.count != count {
            (self.count, self.since) = (count, Some(now));
        }
        let sent = probe.filter(|sent| self.told != Some(*sent))?;
        let since = self.since.max(Some(sent))?;
        if now - since < threshold {
            return None;
        }
        let (looked, before) = history.before(since)?;
        let computed = times()?.on_cpu.saturating_sub(before.on_cpu);
        // What it may have computed before.
        let own = computed.saturating_sub(since - looked);
        if own < threshold {
            return None;
        }
        self.told = Some(sent);
        let cause = Cause::Computes;
        Some(Stuck { since, own, cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLD: Duration = Duration::from_millis(25);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Looks each 10 ms at a worker that computes for so many milliseconds in between: what is told at
    /// which. `probe`: the look at which it is sent, which is not answered. `count`: at each look.
    fn told(probe: u64, computes: u64, count: impl Fn(u64) -> u64) -> Vec<(u64, u128)> {
        let begin = Instant::now();
        let (mut unnamed, mut history) = (Unnamed::default(), History::default());
        let look = |nth: u64| {
            let (now, on_cpu) = (begin + ms(10 * nth), ms(computes * nth));
            let times = Times {
                on_cpu,
                ..Times::default()
            };
            history.add(now, times);
            let sent = begin + ms(10 * probe);
            let late = (now >= sent + THRESHOLD).then_some(sent);
            let found = unnamed.look((now, THRESHOLD), count(nth), late, &history, || Some(times));
            found.map(|stuck| (nth, stuck.own.as_millis()))
        };
        (0..20).filter_map(look).collect()
    }

    #[test]
    fn who_computes_while_a_probe_waits_is_told_once() {
        assert_eq!(told(2, 10, |_| 4), [(5, 30)]);
        // It has half of a core.
        assert_eq!(told(2, 5, |_| 4), [(7, 25)]);
    }

    #[test]
    fn nobody_is_while_no_probe_waits() {
        assert_eq!(told(100, 10, |_| 4), []);
    }

    #[test]
    fn who_has_no_core_is_not() {
        assert_eq!(told(2, 1, |_| 4), []);
    }

    /// The time counts from the look after it.
    #[test]
    fn what_has_a_name_is_not() {
        assert_eq!(told(2, 10, |nth| nth / 2), []);
        assert_eq!(told(2, 10, |nth| if nth < 4 { 2 } else { 4 }), [(7, 30)]);
    }
}
