//! Keeps a computing lane from using up a CPU quota that the I/O lane lives on
//! as well.
//!
//! A cgroup with a quota of one core may compute for 100 ms in each period of
//! 100 ms, all threads together; then the kernel stops every one of them until
//! the period ends. Weights don't help: they share what there is, and there is
//! nothing left. Nor do fewer threads, where the quota is one core, or where
//! another priority computes beside.
//!
//! So the lane's threads keep an account between two jobs. It is credited with
//! a share of the quota as time passes, debited with the CPU time that the
//! *process* has used (whatever the I/O lane takes is thus taken from the CPU
//! lane), and a thread that finds it overdrawn sleeps until it is not. Credit
//! is kept up to what the share leaves of a period's quota: a burst after a
//! rest, and a full share of the period after it, are together one quota.
//!
//! Debt is kept up to a period's quota, and a thread sleeps for a period at
//! most before it runs one job all the same: an I/O lane that needs all of the
//! quota for itself slows the CPU lane down, but does not stop it.
//!
//! A job is not interrupted: one that runs for longer than the quota lasts is
//! stopped by the kernel, and all others with it. Futures that
//! [`yield_if_due`](crate::yield_if_due) have such a pause at each turn.
//!
//! Only threads of the CPU lane lock the account.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::quota::Quota;

/// Of the quota. The rest is for the jobs that run a little over.
const SHARE: f64 = 0.9;

/// A sleep is cut in pieces of this, so that a thread sees its lane close.
const NAP: Duration = Duration::from_millis(5);

/// As long as there is credit, the books are not looked at more often.
const LOOK_AGAIN: Duration = Duration::from_micros(250);

pub(crate) struct Pacer {
    /// Seconds of CPU time per second.
    rate: f64,
    most_credit: f64,
    most_debt: f64,
    period: Duration,
    account: Mutex<Account>,
}

struct Account {
    /// Seconds of CPU time; negative: overdrawn.
    credit: f64,
    at: Instant,
    used: Duration,
}

impl Pacer {
    /// None if there is no quota to keep, or no clock to keep it by.
    pub(crate) fn for_this_process() -> Option<Self> {
        let quota = Quota::below_cores()?;
        Some(Self::new(quota, Instant::now(), cpu_time()?))
    }

    fn new(quota: Quota, at: Instant, used: Duration) -> Self {
        let rate = quota.cores * SHARE;
        let most_debt = quota.cores * quota.period.as_secs_f64();
        let most_credit = most_debt * (1.0 - SHARE);
        Self {
            rate,
            most_credit,
            most_debt,
            period: quota.period,
            account: Mutex::new(Account {
                credit: most_credit,
                at,
                used,
            }),
        }
    }

    /// Sleeps until there is credit, for a period at most, or until `is_over`
    /// says that it doesn't matter.
    pub(crate) fn pause(&self, is_over: impl Fn() -> bool) {
        let start = Instant::now();
        let mut now = start;
        while let Some(sleep) = self.must_pause(now, cpu_time) {
            if now - start >= self.period || is_over() {
                return;
            }
            thread::sleep(sleep.min(NAP));
            now = Instant::now();
        }
    }

    /// How long from now the account stays overdrawn, if it is.
    fn must_pause(
        &self,
        now: Instant,
        used: impl FnOnce() -> Option<Duration>,
    ) -> Option<Duration> {
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(account.at);
        if account.credit >= 0.0 && passed < LOOK_AGAIN {
            return None;
        }
        let used = used()?;
        let spent = used.saturating_sub(account.used).as_secs_f64();
        let credit = account.credit + passed.as_secs_f64() * self.rate - spent;
        *account = Account {
            credit: credit.clamp(-self.most_debt, self.most_credit),
            at: account.at.max(now),
            used,
        };
        (credit < 0.0).then(|| Duration::from_secs_f64(-credit / self.rate))
    }
}

/// The CPU time of all threads of this process, ended ones too.
#[cfg(target_os = "linux")]
#[allow(clippy::unnecessary_wraps, reason = "it is not to be had elsewhere")]
fn cpu_time() -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(used.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(used.tv_nsec).unwrap_or_default();
    Some(Duration::from_secs(seconds) + Duration::from_nanos(nanos))
}

#[cfg(not(target_os = "linux"))]
fn cpu_time() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// One core, 100 ms: 90 ms of CPU time per 100 ms, and 10 ms of credit.
    fn one_core() -> (Pacer, Instant) {
        let quota = Quota {
            cores: 1.0,
            period: ms(100),
        };
        let start = Instant::now();
        (Pacer::new(quota, start, ms(0)), start)
    }

    #[test]
    fn an_overdrawn_account_is_paid_back() {
        let (pacer, start) = one_core();
        let pause = |at, used| pacer.must_pause(start + ms(at), || Some(ms(used)));
        // Busy all the time: it lives on its credit for 100 ms, to the dot.
        assert_eq!(pause(99, 99), None);
        // 20 ms later there are 18 ms more, and 29 ms were spent.
        let debt = pause(119, 128).unwrap();
        let expected = (128.0 - 10.0 - 0.9 * 119.0) / 0.9;
        assert!(
            (debt.as_secs_f64() * 1e3 - expected).abs() < 1e-6,
            "{debt:?}"
        );
        // Having slept that long, it may go on.
        assert_eq!(pause(119 + 13, 128), None);
    }

    #[test]
    fn a_rest_is_not_saved_up_beyond_a_burst() {
        let (pacer, start) = one_core();
        let pause = |at, used| pacer.must_pause(start + ms(at), || Some(ms(used)));
        assert_eq!(pause(10_000, 0), None);
        assert_eq!(pause(10_100, 99), None);
        assert!(pause(10_200, 199).is_some());
    }

    /// Or the lane would stand still for as long as the I/O lane was greedy.
    #[test]
    fn debt_is_bounded() {
        let (pacer, start) = one_core();
        let pause = |at, used| pacer.must_pause(start + ms(at), || Some(ms(used)));
        // Two cores' worth, for ten seconds: then 100 ms of debt, at 90 a 100.
        assert!(pause(10_000, 20_000).is_some());
        assert!(pause(10_110, 20_000).is_some());
        assert_eq!(pause(10_112, 20_000), None);
    }

    #[test]
    fn the_books_are_not_looked_at_for_each_job() {
        let (pacer, start) = one_core();
        let look = |at| pacer.must_pause(at, || unreachable!("it looked"));
        assert_eq!(look(start + LOOK_AGAIN / 2), None);
    }
}
