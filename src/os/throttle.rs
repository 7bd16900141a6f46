//! Keeps a computing lane from using up a CPU quota that the I/O lane lives on
//! as well.
//!
//! A cgroup with a quota of one core may compute for 100 ms in each period of
//! 100 ms, all threads together; then the kernel throttles it: every thread
//! stops until the period ends. Weights don't help, as they share what there is
//! and nothing is left. Nor do fewer threads, where the quota is one core, or
//! where another priority computes beside.
//!
//! So the lane's threads pay for what they compute out of two token buckets,
//! and between two jobs a thread sleeps while its bucket is empty. Each bucket
//! has an income of nine tenths of the quota:
//!
//! - **All** pays for the CPU time of the *process*: what the I/O lane takes is
//!   thus taken from the CPU lane. Normal and Low wait for it, and Low leaves
//!   the last half of the credit to Normal.
//! - **High** pays for what High's threads compute, and only High waits for it:
//!   a High job does not pay for what Low did before.
//!
//! A bucket holds a tenth of a period's quota: a burst after a rest, and a full
//! income for the period after it, are together one quota. It goes into debt by
//! a period's quota at most.
//!
//! An I/O lane that needs all of the quota slows the CPU lane down, but does not
//! stop it. This floor has no bucket: a pause ends, whatever the credit, after
//! nine times the time that its thread has computed before it. So a lane of one
//! thread has a tenth of a quota of one core, with small jobs and large ones
//! alike. The pause is longer by the number of threads that pause at once, and
//! shorter by the cores of the quota: the floor is a tenth of the quota, however
//! many threads share it.
//!
//! A job is not interrupted: one that runs for longer than the quota lasts is
//! stopped by the kernel, and all others with it. Futures that
//! [`yield_if_due`](crate::yield_if_due) have such a pause at each turn.
//!
//! Only threads of the CPU lane use the buckets, and none waits for their lock:
//! a thread of Low may hold it while the kernel runs others. A thread that finds
//! it taken goes on without a pause. All clocks count up, so the next look pays
//! for this one too.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::cpu_clock;
use super::quota::Quota;
use crate::priority::Priority;

/// Of the quota, a bucket's income. The rest is for jobs that run a little over.
const SHARE: f64 = 0.9;
/// Of the quota, what the lane computes even if there is no credit.
const FLOOR: f64 = 0.1;
/// Of a full bucket, what Low leaves to Normal.
const LEFT_TO_NORMAL: f64 = 0.5;

/// A pause is cut in pieces of this, so that a thread sees its lane close.
const NAP: Duration = Duration::from_millis(5);

/// A thread does not look at its bucket more often: two of the clocks are system
/// calls, and dear for small jobs.
const LOOK_AGAIN: Duration = Duration::from_micros(250);

pub(crate) struct Throttle {
    pub(crate) quota: Quota,
    buckets: Mutex<Buckets>,
    /// Threads in a pause. `Relaxed`: it is a number that orders nothing else,
    /// and an old one makes a pause a little longer or shorter.
    pausing: AtomicUsize,
}

/// Credits are in seconds of CPU time; negative: in debt.
struct Buckets {
    all: f64,
    high: f64,
    /// They have the income until `at`, and have paid for this CPU time of the
    /// process.
    at: Instant,
    process: Duration,
}

/// What a look finds if there is no credit.
struct Shortage {
    now: Instant,
    /// Until there is some, if nothing is spent.
    wait: Duration,
    /// What the thread has computed since its last look.
    computed: Duration,
}

thread_local! {
    /// When, and this thread's CPU time then.
    static LAST_LOOK: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// A test sets its own.
trait Clocks {
    fn now(&self) -> Instant {
        Instant::now()
    }
    fn of_process(&self) -> Option<Duration> {
        cpu_clock::of_process()
    }
    fn of_thread(&self) -> Option<Duration> {
        cpu_clock::of_thread()
    }
    fn sleep(&self, time: Duration) {
        thread::sleep(time);
    }
}

struct RealClocks;

impl Clocks for RealClocks {}

impl Throttle {
    /// None if there is no quota to keep, or no clock to keep it by.
    pub(crate) fn for_this_process() -> Option<Self> {
        let process = cpu_clock::of_process()?;
        Some(Self::new(Quota::below_cores()?, Instant::now(), process))
    }

    fn new(quota: Quota, at: Instant, process: Duration) -> Self {
        let full = quota.of_a_period() * (1.0 - SHARE);
        Self {
            quota,
            buckets: Mutex::new(Buckets {
                all: full,
                high: full,
                at,
                process,
            }),
            pausing: AtomicUsize::new(0),
        }
    }

    /// Sleeps until a job of this priority may compute, or until `is_over` says
    /// that it doesn't matter.
    pub(crate) fn pause(&self, priority: Priority, is_over: impl Fn() -> bool) {
        self.pause_by(&RealClocks, priority, is_over);
    }

    fn pause_by(&self, clocks: &impl Clocks, priority: Priority, is_over: impl Fn() -> bool) {
        let mut shortage = self.look(clocks, priority);
        let Some(Shortage { now, computed, .. }) = shortage else {
            return;
        };
        let pausing = self.pausing.fetch_add(1, Ordering::Relaxed) + 1;
        let end = now + self.longest_pause(computed, pausing);
        while let Some(Shortage { now, wait, .. }) = shortage {
            let left = end.saturating_duration_since(now);
            if left.is_zero() || is_over() {
                break;
            }
            clocks.sleep(wait.min(left).min(NAP));
            shortage = self.look(clocks, priority);
        }
        self.pausing.fetch_sub(1, Ordering::Relaxed);
    }

    /// The floor. A job that ran for several periods counts as one of them.
    fn longest_pause(&self, computed: Duration, pausing: usize) -> Duration {
        let threads_per_core = pausing as f64 / self.quota.cores;
        let times = (1.0 - FLOOR) / FLOOR * threads_per_core;
        computed.min(self.quota.period).mul_f64(times)
    }

    /// None if the thread may go on: there is credit, or it is too early to
    /// look, or another thread does.
    fn look(&self, clocks: &impl Clocks, priority: Priority) -> Option<Shortage> {
        let now = clocks.now();
        let last = LAST_LOOK.get();
        if last.is_some_and(|(at, _)| now.saturating_duration_since(at) < LOOK_AGAIN) {
            return None;
        }
        let mut buckets = self.buckets.try_lock().ok()?;
        let (thread, process) = (clocks.of_thread()?, clocks.of_process()?);
        LAST_LOOK.set(Some((now, thread)));
        let computed = last.map_or(Duration::ZERO, |(_, before)| thread.saturating_sub(before));

        let is_high = priority == Priority::High;
        let of_a_period = self.quota.of_a_period();
        let full = of_a_period * (1.0 - SHARE);
        let income = self.quota.cores * SHARE;
        let received = now.saturating_duration_since(buckets.at).as_secs_f64() * income;
        let book = |credit: f64, spent: Duration| {
            (credit + received - spent.as_secs_f64()).clamp(-of_a_period, full)
        };
        buckets.all = book(buckets.all, process.saturating_sub(buckets.process));
        buckets.high = book(
            buckets.high,
            if is_high { computed } else { Duration::ZERO },
        );
        buckets.at = buckets.at.max(now);
        buckets.process = process;

        let missing = match priority {
            Priority::High => -buckets.high,
            Priority::Normal => -buckets.all,
            Priority::Low => full * LEFT_TO_NORMAL - buckets.all,
        };
        (missing > 0.0).then(|| Shortage {
            now,
            wait: Duration::from_secs_f64(missing / income),
            computed,
        })
    }
}

#[cfg(test)]
mod tests;
