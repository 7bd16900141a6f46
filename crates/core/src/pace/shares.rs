//! [`Shares`]: how the short jobs and the others of a priority share its threads. While both wait,
//! short jobs have four fifths of the threads' time, and the others one.
//!
//! The *lead* is what decides. It is in microseconds of the threads' time: a step of a short job
//! adds what it took, one of another job takes off four times as much. Above 0, the next job is
//! one of the others; else it is a short one. For example, on one thread: a job of 20 ms ends, and
//! the lead falls by 80 ms. So short jobs are next until they have taken 80 ms, and then it is the
//! turn of another job of 20 ms.
//!
//! **What is forgotten.** What short jobs took while no other waited is no lead: then it is 0 at
//! most. Where others ran while no short one waited, it is minus a *burst* at least: for so long, short
//! jobs that come at once pass all others. A burst is 100 ms of each thread, or a fifth of
//! `max_wait` if that is less. One step changes the lead by a bound: it stays between four bursts
//! below 0 and one above, so that a job of a minute does not keep the others of its kind from the
//! threads for four.
//!
//! Between threads it is a hint, which no protocol rests on: where two threads pop at once, one may
//! go by what was the lead before.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

/// What the short jobs get while both wait, over what the others get.
const SHORT_OVER_OTHERS: i64 = 4;
const BURST: Duration = Duration::from_millis(100);

pub(crate) struct Shares {
    lead: AtomicI64,
    /// Of all threads, in microseconds.
    burst: i64,
}

impl Shares {
    pub(crate) fn new(threads: usize, max_wait: Option<Duration>) -> Self {
        let burst = max_wait.map_or(BURST, |wait| BURST.min(wait / 5));
        Self {
            lead: AtomicI64::new(0),
            burst: burst.as_micros() as i64 * threads as i64,
        }
    }

    /// As these were at first.
    pub(crate) fn anew(&self) -> Self {
        Self {
            lead: AtomicI64::new(0),
            burst: self.burst,
        }
    }

    /// A step has taken so much of a thread's time, or some of which it is a sample.
    pub(crate) fn add(&self, is_short: bool, time: Duration) {
        let micros = time.as_micros().min(1 << 40) as i64;
        let change = if is_short {
            micros
        } else {
            -micros * SHORT_OVER_OTHERS
        };
        let before = self.lead.load(Relaxed);
        let bounded = (before + change).clamp(-4 * self.burst, self.burst);
        self.lead.fetch_add(bounded - before, Relaxed);
    }

    /// Whether the next job is a short one; there is one. `others_wait`: and others.
    #[inline]
    pub(crate) fn is_turn_of_short(&self, others_wait: bool) -> bool {
        let leads = self.lead.load(Relaxed) > 0;
        if leads && !others_wait {
            self.lead.fetch_min(0, Relaxed);
        }
        !(leads && others_wait)
    }

    /// Another job is next, and no short one waits.
    #[inline]
    pub(crate) fn no_short_waits(&self) {
        if self.lead.load(Relaxed) < -self.burst {
            self.lead.fetch_max(-self.burst, Relaxed);
        }
    }

    /// For how long, in microseconds of the threads' time, short jobs may go on to pass the others.
    pub(crate) fn may_pass(&self) -> u64 {
        self.lead.load(Relaxed).min(0).unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Both wait all the time: how long the others ran, in milliseconds, of `all`.
    fn others(shares: &Shares, short: u32, other: u32, all: u32) -> u32 {
        let (mut ran, mut of_others) = (0, 0);
        while ran < all {
            let is_short = shares.is_turn_of_short(true);
            let time = if is_short { short } else { other };
            shares.add(is_short, time * MS);
            ran += time;
            of_others += if is_short { 0 } else { time };
        }
        of_others
    }

    #[test]
    fn short_jobs_get_four_fifths_while_both_wait() {
        for (short, other) in [(1, 1), (1, 20), (1, 90), (3, 7)] {
            let shares = Shares::new(1, None);
            let of_others = others(&shares, short, other, 10_000);
            assert!(
                (1_900..2_100).contains(&of_others),
                "{short} {other}: {of_others}"
            );
        }
    }

    #[test]
    fn what_short_jobs_took_while_no_other_waited_is_no_lead() {
        let shares = Shares::new(1, None);
        shares.add(true, 10_000 * MS);
        assert!(shares.is_turn_of_short(false));
        // Another one comes: after one short step more it has its turn.
        assert!(shares.is_turn_of_short(true));
        shares.add(true, MS);
        assert!(!shares.is_turn_of_short(true));
    }

    #[test]
    fn a_burst_of_short_jobs_passes_the_others_for_100_ms_of_each_thread() {
        for threads in [1, 4] {
            let shares = Shares::new(threads, None);
            for _ in 0..100 {
                shares.no_short_waits();
                shares.add(false, 20 * MS);
            }
            shares.no_short_waits();
            let mut passed = 0;
            while shares.is_turn_of_short(true) {
                shares.add(true, MS);
                passed += 1;
            }
            assert_eq!(passed, 100 * threads + 1);
        }
    }

    #[test]
    fn a_job_of_an_hour_does_not_keep_the_others_away_for_four() {
        let shares = Shares::new(1, None);
        shares.add(false, 3_600_000 * MS);
        assert_eq!(shares.may_pass(), 400_000);
        assert!(others(&shares, 1, 1, 1_000) > 100);
    }
}
