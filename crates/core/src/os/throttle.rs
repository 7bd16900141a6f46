//! Keeps the CPU lane from using up a CPU quota that the I/O lane needs as well.
//!
//! **The problem.** With a quota of one core, all threads of a cgroup together may
//! compute for 100 ms in each period of 100 ms. Then the kernel stops every thread
//! until the period ends. Nice values do not help: they share CPU time, and none is
//! left. Fewer threads do not help either where the quota is one core, or where another
//! priority computes at the same time.
//!
//! **Token buckets.** The lane's threads pay for their CPU time from two token buckets.
//! Between two jobs, a thread sleeps while its bucket is empty. The income of each
//! bucket is nine tenths of the quota:
//!
//! - **All** pays for the CPU time of the *process*. So what the I/O lane uses is taken
//!   from the CPU lane. `Normal` and `Low` wait for this bucket. `Low` leaves the last
//!   half of the credit to `Normal`.
//! - **High** pays for the CPU time of `High`'s threads, and only `High` waits for it.
//!   So a `High` job does not pay for what `Low` did before.
//!
//! A full bucket holds a tenth of a period's quota. So a burst after an idle time, and
//! the full income of the period that follows, together make one quota. The debt of a
//! bucket is at most one period's quota.
//!
//! **The floor.** An I/O lane that needs the whole quota slows the CPU lane down, but
//! does not stop it. This needs no further bucket. Whatever the credit, a pause ends
//! after nine times the CPU time that its thread used before it. So a lane of one
//! thread gets a tenth of a quota of one core, with small jobs and large ones alike.
//! The limit of a pause is multiplied by the number of threads that pause at once, and
//! divided by the cores of the quota. So the floor is a tenth of the quota, however
//! many threads share it.
//!
//! **What it cannot do.** A job is not interrupted. If a job runs for longer than the
//! quota lasts, the kernel stops it, and all other threads with it. A future that calls
//! [`yield_if_due`](crate::yield_if_due) can pause at each of its turns.
//!
//! **A quota that changes.** A container may be resized while it runs. One look in
//! [`READ_AGAIN`] has the lane's control thread read the quota anew: no job waits for those
//! files. If it has changed, full buckets take the place of the old ones. Without a quota a
//! thread only asks for one, and only each [`CALLS_TO_A_LOOK`]th call reads a clock for that.
//!
//! **The lock.** Only threads of the CPU lane use the buckets, and none of them waits
//! for the lock: a thread of `Low` may hold it while the kernel runs other threads. A
//! thread that finds the lock taken goes on without a pause. All clocks count up, so
//! its next look pays for this time too.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_utils::atomic::AtomicCell;

use super::platform;
use super::quota::Quota;
use crate::priority::Priority;

/// A bucket's income, as a part of the quota. The rest is for jobs that run a little
/// too long.
const SHARE: f64 = 0.9;
/// What the lane may compute without any credit, as a part of the quota.
const FLOOR: f64 = 0.1;
/// What `Low` leaves to `Normal`, as a part of a full bucket.
const LEFT_TO_NORMAL: f64 = 0.5;

/// A pause is a series of sleeps of at most this length, so that the thread notices
/// when its lane closes.
const NAP: Duration = Duration::from_millis(5);

/// A thread looks at its bucket at most this often. Two of the clocks are system calls,
/// which are expensive beside small jobs.
const LOOK_AGAIN: Duration = Duration::from_micros(250);

/// The quota is read at most this often.
const READ_AGAIN: Duration = Duration::from_secs(2);

/// Without a quota, how many calls a thread makes until it looks.
const CALLS_TO_A_LOOK: u32 = 16;

pub(crate) struct Throttle {
    /// The quota in cores, and 0 without a quota.
    cores: AtomicCell<f64>,
    buckets: Mutex<Buckets>,
    /// The number of threads in a pause. `Relaxed`: it orders nothing else, and an old
    /// value only makes a pause a little longer or shorter.
    pausing: AtomicUsize,
    /// Has another thread call [`read_again`](Throttle::read_again).
    ask: Box<dyn Fn() + Send + Sync>,
}

/// Credits are in seconds of CPU time. A negative credit is a debt.
struct Buckets {
    quota: Option<Quota>,
    /// When it was read, or a thread last asked for that.
    read: Instant,
    all: f64,
    high: f64,
    /// Both credits include the income until `at`, and the payment for the CPU time of
    /// the process up to `process`.
    at: Instant,
    process: Duration,
}

/// The result of a look that finds no credit.
struct Shortage {
    now: Instant,
    /// The time until there is credit, if nothing is spent meanwhile.
    wait: Duration,
    /// The longest pause that the floor allows, if no other thread pauses.
    longest: Duration,
}

thread_local! {
    /// When this thread last looked, and its CPU time then.
    static LAST_LOOK: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// The clocks and the quota. A test has its own.
pub(crate) trait Clocks {
    fn now(&self) -> Instant {
        Instant::now()
    }
    fn of_process(&self) -> Option<Duration> {
        platform::cpu_of_process()
    }
    fn of_thread(&self) -> Option<Duration> {
        platform::cpu_of_thread()
    }
    fn quota(&self) -> Option<Quota> {
        Quota::below_cores()
    }
    fn sleep(&self, time: Duration) {
        thread::sleep(time);
    }
}

pub(crate) struct RealClocks;

impl Clocks for RealClocks {}

impl Buckets {
    fn full(clocks: &impl Clocks) -> Option<Self> {
        let (quota, now) = (clocks.quota(), clocks.now());
        let full = quota.map_or(0.0, Quota::of_a_period) * (1.0 - SHARE);
        Some(Self {
            quota,
            read: now,
            all: full,
            high: full,
            at: now,
            process: clocks.of_process()?,
        })
    }

    fn cores(&self) -> f64 {
        self.quota.map_or(0.0, |quota| quota.cores)
    }
}

impl Throttle {
    /// Returns `None` if there is no CPU clock. `ask` must not block; it has another thread call
    /// [`read_again`](Self::read_again).
    pub(crate) fn new(
        clocks: &impl Clocks,
        ask: impl Fn() + Send + Sync + 'static,
    ) -> Option<Self> {
        let buckets = Buckets::full(clocks)?;
        Some(Self {
            cores: AtomicCell::new(buckets.cores()),
            buckets: Mutex::new(buckets),
            pausing: AtomicUsize::new(0),
            ask: Box::new(ask),
        })
    }

    /// Reads the quota: some ten small files.
    pub(crate) fn read_again(&self, clocks: &impl Clocks) {
        let full = Buckets::full(clocks);
        // If the lock is taken, it is asked for once more.
        let (Some(full), Ok(mut buckets)) = (full, self.buckets.try_lock()) else {
            return;
        };
        if full.quota != buckets.quota {
            self.cores.store(full.cores());
            // What was computed before is not charged.
            *buckets = full;
        }
    }

    /// The quota, in cores.
    pub(crate) fn cores(&self) -> Option<f64> {
        Some(self.cores.load()).filter(|cores| *cores > 0.0)
    }

    /// Whether to call [`pause`](Self::pause) before this job.
    pub(crate) fn is_due(&self) -> bool {
        let calls = CALLS.replace(CALLS.get().wrapping_add(1));
        calls % CALLS_TO_A_LOOK == 0 || self.cores().is_some()
    }

    /// Sleeps until a job of this priority may run, or until `is_over` returns true.
    pub(crate) fn pause(
        &self,
        clocks: &impl Clocks,
        priority: Priority,
        is_over: &dyn Fn() -> bool,
    ) {
        let mut shortage = self.look(clocks, priority);
        let Some(Shortage { now, longest, .. }) = shortage else {
            return;
        };
        let pausing = self.pausing.fetch_add(1, Ordering::Relaxed) + 1;
        let end = now + longest.mul_f64(pausing as f64);
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

    /// Returns `None` if the thread may go on: there is credit, or it is too early to
    /// look, or another thread holds the lock.
    fn look(&self, clocks: &impl Clocks, priority: Priority) -> Option<Shortage> {
        let now = clocks.now();
        let again = self.cores().map_or(READ_AGAIN, |_| LOOK_AGAIN);
        let is_early = |(at, _)| now.saturating_duration_since(at) < again;
        if LAST_LOOK.get().is_some_and(is_early) {
            return None;
        }
        let mut buckets = self.buckets.try_lock().ok()?;
        let is_due = now.saturating_duration_since(buckets.read) >= READ_AGAIN;
        if is_due {
            buckets.read = now;
        }
        let shortage = buckets.look(clocks, priority, now);
        // The other thread may take this one's core at once, so without the lock.
        drop(buckets);
        if is_due {
            (self.ask)();
        }
        shortage
    }
}

impl Buckets {
    fn look(&mut self, clocks: &impl Clocks, priority: Priority, now: Instant) -> Option<Shortage> {
        let last = LAST_LOOK.get();
        let (thread, process) = (clocks.of_thread()?, clocks.of_process()?);
        LAST_LOOK.set(Some((now, thread)));
        let computed = last.map_or(Duration::ZERO, |(_, before)| thread.saturating_sub(before));

        let quota = self.quota?;

        let is_high = priority == Priority::High;
        let of_a_period = quota.of_a_period();
        let full = of_a_period * (1.0 - SHARE);
        let income = quota.cores * SHARE;
        let received = now.saturating_duration_since(self.at).as_secs_f64() * income;
        let charge = |credit: &mut f64, spent: Duration| {
            *credit = (*credit + received - spent.as_secs_f64()).clamp(-of_a_period, full);
        };
        let spent = process.saturating_sub(self.process);
        charge(&mut self.all, spent);
        charge(&mut self.high, computed * u32::from(is_high));
        self.at = self.at.max(now);
        self.process = process;

        let missing = match priority {
            Priority::High => -self.high,
            Priority::Normal => -self.all,
            Priority::Low => full * LEFT_TO_NORMAL - self.all,
        };
        (missing > 0.0).then(|| Shortage {
            now,
            wait: Duration::from_secs_f64(missing / income),
            // Of a job that ran for several periods, only one period counts.
            longest: computed
                .min(quota.period)
                .mul_f64((1.0 - FLOOR) / FLOOR / quota.cores),
        })
    }
}

#[cfg(test)]
mod tests;
