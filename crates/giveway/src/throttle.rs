//! Keeps threads that give way from using up a CPU quota that others of the process need as well.
//!
//! **The problem.** With a quota of one core, all threads of a cgroup together may
//! compute for 100 ms in each period of 100 ms. Then the kernel stops every thread
//! until the period ends. Nice values do not help: they share CPU time, and none is
//! left. Fewer threads do not help either where the quota is one core, or where threads of
//! another kind compute at the same time.
//!
//! **Token buckets.** The threads pay for their CPU time from two token buckets.
//! Between two jobs, a thread sleeps while its bucket is empty. The income of each
//! bucket is 19 of 20 parts of the quota:
//!
//! - **All** pays for the CPU time of the *process*. So what its other threads use is taken
//!   from those that give way. [`Claim::Shared`] and [`Claim::Leftover`] wait for this bucket, and
//!   `Leftover` leaves the last half of the credit to `Shared`.
//! - **First** pays for the CPU time of the threads of [`Claim::First`], and only they wait for it.
//!   So such a job does not pay for what others did before.
//!
//! A full bucket holds a twentieth of a period's quota. So a burst after an idle time, and
//! the full income of the period that follows, together make one quota. The debt of a
//! bucket is at most one period's quota.
//!
//! **The floor.** Other threads that need the whole quota slow these down, but do not stop
//! them. This needs no further bucket. Whatever the credit, a pause ends
//! after nine times the CPU time that its thread used before it. So a single thread
//! gets a tenth of a quota of one core, with small jobs and large ones alike.
//! The limit of a pause is multiplied by the number of threads that pause at once, and
//! divided by the cores of the quota. So the floor is a tenth of the quota, however
//! many threads share it.
//!
//! **What it cannot do.** A job is not interrupted. If a job runs for longer than the
//! quota lasts, the kernel stops it, and all other threads with it.
//!
//! **A quota that changes.** A container may be resized while it runs. One look in
//! [`READ_AGAIN`] has the starter read the quota anew: no job waits for those
//! files. If it has changed, full buckets take the place of the old ones. Without a quota a
//! thread only asks for one, and only each [`CALLS_TO_A_LOOK`]th call reads a clock for that.
//!
//! **The lock.** Only threads that give way use the buckets, and none of them waits
//! for the lock: the thread that holds it may be off its core. A
//! thread that finds the lock taken goes on without a pause. All clocks count up, so
//! its next look pays for this time too.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::platform;
use crate::quota::Quota;
use crate::starter;

/// A bucket's income, as a part of the quota. The rest is for jobs that run a little too long, and
/// what others use meanwhile.
const SHARE: f64 = 0.95;
/// What these threads may compute without any credit, as a part of the quota.
const FLOOR: f64 = 0.1;
/// What `Leftover` leaves to `Shared`, as a part of a full bucket.
const LEFT_TO_SHARED: f64 = 0.5;

/// A pause is a series of sleeps of at most this length, so that the thread notices
/// when its lane closes.
const NAP: Duration = Duration::from_millis(5);

/// A thread looks at its bucket at most this often. Two of the clocks are system calls,
/// which are expensive beside small jobs.
const LOOK_AGAIN: Duration = Duration::from_micros(250);

/// The quota is read at most this often.
const READ_AGAIN: Duration = Duration::from_secs(2);

/// The bits of 0.0: no quota.
const NONE: u64 = 0;

/// Without a quota, how many calls a thread makes until it looks.
const CALLS_TO_A_LOOK: u32 = 16;

/// What a thread may use of the quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Claim {
    /// It comes first: it pauses only for the CPU time that the threads of this claim have used.
    First,
    /// What the rest of the process has left.
    Shared,
    /// What `Shared` has left.
    Leftover,
}

/// Has threads pause between two jobs before the process has used up its CPU quota.
///
/// Cheap to clone. All threads that give way share one, each with a [`Meter`] of its own. The quota
/// is that of the process's cgroup, if it is less than the cores that the process may run on, and
/// is read again every two seconds while threads compute, once [`start`](crate::start) was called.
/// They take 95 % of it, less what the rest of the process uses, and at least a tenth in any case.
///
/// # Examples
///
/// ```
/// use giveway::{Claim, Meter, Throttle};
/// // `None` elsewhere than on Linux.
/// let throttle = Throttle::new();
/// std::thread::spawn(move || {
///     let meter = Meter::default();
///     for job in 0..3 {
///         if let Some(throttle) = &throttle {
///             throttle.pause_if_due(&meter, Claim::Shared, || false);
///         }
///         // .. compute
///     }
/// })
/// .join()
/// .unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Throttle(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The bits of the quota in cores, and of 0.0 without a quota.
    cores: AtomicU64,
    buckets: Mutex<Buckets>,
    /// The number of threads in a pause. `Relaxed`: it orders nothing else, and an old
    /// value only makes a pause a little longer or shorter.
    pausing: AtomicUsize,
}

/// What a thread knows of its own CPU time, for [`Throttle::pause_if_due`].
#[derive(Debug, Default)]
pub struct Meter {
    calls: Cell<u32>,
    /// When the thread last looked, and its CPU time then.
    last: Cell<Option<(Instant, Duration)>>,
}

impl Meter {
    /// Of a thread that has not computed yet.
    pub const fn new() -> Self {
        Self {
            calls: Cell::new(0),
            last: Cell::new(None),
        }
    }
}

/// Credits are in seconds of CPU time. A negative credit is a debt.
#[derive(Debug)]
struct Buckets {
    quota: Option<Quota>,
    /// When it was read, or a thread last asked for that.
    read: Instant,
    all: f64,
    first: f64,
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

/// The clocks and the quota. A test has its own.
trait Clocks {
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
    /// Has the quota read again, by another thread: no job waits for those files.
    fn ask(&self, throttle: &Throttle) {
        let throttle = throttle.clone();
        starter::run(move || throttle.read_again(&RealClocks));
    }
    fn sleep(&self, time: Duration) {
        thread::sleep(time);
    }
}

struct RealClocks;

impl Clocks for RealClocks {}

impl Buckets {
    fn full(clocks: &impl Clocks) -> Option<Self> {
        let (quota, now) = (clocks.quota(), clocks.now());
        let full = quota.map_or(0.0, Quota::of_a_period) * (1.0 - SHARE);
        Some(Self {
            quota,
            read: now,
            all: full,
            first: full,
            at: now,
            process: clocks.of_process()?,
        })
    }

    fn cores(&self) -> f64 {
        self.quota.map_or(0.0, |quota| quota.cores)
    }
}

impl Throttle {
    /// Reads the quota: some ten small files. `None` elsewhere than on Linux.
    pub fn new() -> Option<Self> {
        Self::by(&RealClocks)
    }

    fn by(clocks: &impl Clocks) -> Option<Self> {
        let buckets = Buckets::full(clocks)?;
        Some(Self(Arc::new(Inner {
            cores: AtomicU64::new(buckets.cores().to_bits()),
            buckets: Mutex::new(buckets),
            pausing: AtomicUsize::new(0),
        })))
    }

    fn read_again(&self, clocks: &impl Clocks) {
        let full = Buckets::full(clocks);
        // If the lock is taken, it is asked for once more.
        let (Some(full), Ok(mut buckets)) = (full, self.0.buckets.try_lock()) else {
            return;
        };
        if full.quota != buckets.quota {
            let cores = full.cores().to_bits();
            self.0.cores.store(cores, Ordering::Relaxed);
            // What was computed before is not charged.
            *buckets = full;
        }
    }

    /// The quota in cores, if there is one.
    pub fn cores(&self) -> Option<f64> {
        let cores = f64::from_bits(self.0.cores.load(Ordering::Relaxed));
        Some(cores).filter(|cores| *cores > 0.0)
    }

    /// Sleeps until a job of this claim may run, or until `is_over` returns true. Call it before
    /// each job. Returns for how long it slept.
    ///
    /// With a quota each call reads a clock, and at most every 250 µs two more, under a lock that
    /// no thread waits for. Without one, each sixteenth call reads a clock. A pause asks `is_over`
    /// at least every 5 ms.
    #[inline]
    pub fn pause_if_due(
        &self,
        meter: &Meter,
        claim: Claim,
        is_over: impl Fn() -> bool,
    ) -> Duration {
        match self.is_due(meter) && !is_over() {
            true => self.pause(&RealClocks, meter, claim, &is_over),
            false => Duration::ZERO,
        }
    }

    #[inline]
    fn is_due(&self, meter: &Meter) -> bool {
        let calls = meter.calls.replace(meter.calls.get().wrapping_add(1));
        calls % CALLS_TO_A_LOOK == 0 || self.0.cores.load(Ordering::Relaxed) != NONE
    }

    #[cold]
    fn pause(
        &self,
        clocks: &impl Clocks,
        meter: &Meter,
        claim: Claim,
        is_over: &dyn Fn() -> bool,
    ) -> Duration {
        let mut shortage = self.shortage(clocks, meter, claim);
        let Some(Shortage { now, longest, .. }) = shortage else {
            return Duration::ZERO;
        };
        let began = now;
        let pausing = self.0.pausing.fetch_add(1, Ordering::Relaxed) + 1;
        // Also if `is_over` panics.
        let _pausing = Pausing(&self.0.pausing);
        let end = now + longest.mul_f64(pausing as f64);
        while let Some(Shortage { now, wait, .. }) = shortage {
            let left = end.saturating_duration_since(now);
            if left.is_zero() || is_over() {
                break;
            }
            clocks.sleep(wait.min(left).min(NAP));
            shortage = self.shortage(clocks, meter, claim);
        }
        clocks.now().saturating_duration_since(began)
    }

    /// Returns `None` if the thread may go on: there is credit, or it is too early to
    /// look, or another thread holds the lock.
    fn shortage(&self, clocks: &impl Clocks, meter: &Meter, claim: Claim) -> Option<Shortage> {
        let now = clocks.now();
        let again = self.cores().map_or(READ_AGAIN, |_| LOOK_AGAIN);
        let is_early = |(at, _)| now.saturating_duration_since(at) < again;
        if meter.last.get().is_some_and(is_early) {
            return None;
        }
        let mut buckets = self.0.buckets.try_lock().ok()?;
        let is_due = now.saturating_duration_since(buckets.read) >= READ_AGAIN;
        if is_due {
            buckets.read = now;
        }
        let shortage = buckets.charge(clocks, meter, claim, now);
        // The other thread may take this one's core at once, so without the lock.
        drop(buckets);
        if is_due {
            clocks.ask(self);
        }
        shortage
    }
}

impl Buckets {
    fn charge(
        &mut self,
        clocks: &impl Clocks,
        meter: &Meter,
        claim: Claim,
        now: Instant,
    ) -> Option<Shortage> {
        let (thread, process) = (clocks.of_thread()?, clocks.of_process()?);
        let last = meter.last.replace(Some((now, thread)));
        let computed = last.map_or(Duration::ZERO, |(_, before)| thread.saturating_sub(before));

        let quota = self.quota?;

        let is_first = claim == Claim::First;
        let of_a_period = quota.of_a_period();
        let full = of_a_period * (1.0 - SHARE);
        let income = quota.cores * SHARE;
        let received = now.saturating_duration_since(self.at).as_secs_f64() * income;
        let charge = |credit: &mut f64, spent: Duration| {
            *credit = (*credit + received - spent.as_secs_f64()).clamp(-of_a_period, full);
        };
        let spent = process.saturating_sub(self.process);
        charge(&mut self.all, spent);
        charge(&mut self.first, computed * u32::from(is_first));
        self.at = self.at.max(now);
        self.process = process;

        let missing = match claim {
            Claim::First => -self.first,
            Claim::Shared => -self.all,
            Claim::Leftover => full * LEFT_TO_SHARED - self.all,
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

struct Pausing<'a>(&'a AtomicUsize);

impl Drop for Pausing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
