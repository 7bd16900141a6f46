//! [`Limits`]: how much one priority takes on, in jobs, in time, and of each key. [`Charge`]: what a
//! job, or a permit, has of these.

mod backlog;
mod keys;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{AcquireError, Semaphore};

use crate::error::{Full, JoinError};
use crate::key::Key;
use crate::pace::{Shares, Took};
use crate::panics::run_hook;
use crate::sync::{AtomicBool, AtomicU32, Ordering::Relaxed};
use backlog::Backlog;
use keys::{Keys, Slot};

/// The settings of the builder.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limit {
    pub(crate) jobs: Option<usize>,
    pub(crate) wait: Option<Duration>,
}

pub(crate) struct Limits {
    /// [`Builder::queue_limit`](crate::Builder::queue_limit), and its permits.
    jobs: Option<(usize, Semaphore)>,
    /// [`Builder::max_wait`](crate::Builder::max_wait).
    time: Option<Backlog>,
    /// [`Key::with_max_jobs`](crate::Key::with_max_jobs).
    keys: Arc<Keys>,
    /// The builder has set one.
    pub(crate) is_set: bool,
}

/// Whether the job is short, and for how long it will hold a thread. `None`: of a caller that waits.
pub(crate) type Expected = Option<(bool, Option<Duration>)>;

impl Limits {
    #[cfg(test)]
    #[allow(dead_code, reason = "for the model")]
    pub(crate) fn is_free(&self) -> bool {
        self.keys.is_free() && self.time.as_ref().is_none_or(Backlog::is_free)
    }

    /// `shares`: those of the queue.
    pub(crate) fn new(setting: Limit, threads: usize, shares: &Arc<Shares>) -> Arc<Self> {
        let keys = Arc::<Keys>::default();
        Arc::new(Self {
            jobs: setting.jobs.map(|jobs| (jobs, Semaphore::new(jobs))),
            time: setting
                .wait
                .map(|wait| Backlog::new(wait, threads, shares, &keys)),
            keys,
            is_set: setting.jobs.is_some() || setting.wait.is_some(),
        })
    }

    /// Whether a job may be refused.
    pub(crate) fn may_refuse(&self) -> bool {
        self.is_set || self.keys.are_used()
    }

    pub(crate) fn semaphores(&self) -> impl Iterator<Item = &Semaphore> {
        let turns = self.time.iter().map(|it| &it.turns);
        self.jobs.iter().map(|(_, permits)| permits).chain(turns)
    }

    /// The limit in jobs, and how many of its permits are in use.
    pub(crate) fn jobs(&self) -> Option<(usize, usize)> {
        let (jobs, permits) = self.jobs.as_ref()?;
        Some((*jobs, jobs.saturating_sub(permits.available_permits())))
    }

    pub(crate) fn max_wait(&self) -> Option<Duration> {
        self.time.as_ref().map(|it| it.max_wait)
    }

    /// Looks whether a waiter has room since time has passed.
    pub(crate) fn look(&self) {
        self.time.iter().for_each(Backlog::give_turns);
    }

    /// Admits a job from outside, now or not at all. `expected`: `None` for a caller that would wait,
    /// whose job is not refused later.
    pub(crate) fn admit(
        self: &Arc<Self>,
        key: Option<&Key>,
        expected: Expected,
    ) -> Result<Charge, JoinError> {
        let mut charge = Charge::new(self, key)?;
        charge.admit_in_time(expected)?;
        if let Some((most, permits)) = &self.jobs {
            let permit = permits.try_acquire();
            permit
                .map_err(|_| JoinError::full(Full::Jobs(u32::try_from(*most).unwrap_or(u32::MAX))))?
                .forget();
            charge.has_permit = AtomicBool::new(true);
        }
        if expected.is_none() {
            charge.reserve();
        }
        Ok(charge)
    }
}

pub(crate) struct Charge {
    limits: Arc<Limits>,
    has_permit: AtomicBool,
    /// What it counts in the [`Backlog`], or 0.
    time: AtomicU32,
    key: Option<Key>,
    /// Where [`Keys`] counts it for its key. Never changed: a canceller may give back the time while
    /// a worker releases the rest.
    slot: Option<u16>,
    /// Its slot, if there is one, has not been given back.
    has_slot: AtomicBool,
}

// Relaxed: what is given back is swapped out first, so each part goes back once.
impl Charge {
    /// Counts a job of the key.
    pub(crate) fn new(limits: &Arc<Limits>, key: Option<&Key>) -> Result<Self, JoinError> {
        let slot = key.map(|key| limits.keys.take(key, key.max_jobs));
        let slot = slot.transpose()?;
        Ok(Self::with_slot(limits, key, slot))
    }

    fn with_slot(limits: &Arc<Limits>, key: Option<&Key>, slot: Option<u16>) -> Self {
        Self {
            limits: limits.clone(),
            has_permit: AtomicBool::new(false),
            time: AtomicU32::new(0),
            key: key.cloned(),
            slot,
            has_slot: AtomicBool::new(true),
        }
    }

    /// For what needs no permit. It counts in time all the same. Where the table of keys is full, it
    /// does not count for its key.
    pub(crate) fn exempt(limits: &Arc<Limits>, key: Option<&Key>) -> Option<Self> {
        let slot = key.and_then(|key| limits.keys.take(key, u16::MAX).ok());
        let counts = limits.time.is_some() || key.is_some();
        counts.then(|| Self::with_slot(limits, key, slot))
    }

    pub(crate) fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    fn slot(&self) -> Option<Slot> {
        let (at, weight) = (self.slot?, self.key.as_ref()?.weight);
        Some(Slot { at, weight })
    }

    /// Waits until it has room for a job. A wait for time holds no permit of the limit in jobs.
    pub(crate) async fn acquire(mut self) -> Result<Self, AcquireError> {
        let limits = self.limits.clone();
        if let Some(backlog) = limits.time.as_ref().filter(|_| self.key.is_none()) {
            self.time = AtomicU32::new(backlog.acquire().await?);
        }
        if let Some((_, permits)) = &limits.jobs {
            permits.acquire().await?.forget();
            self.has_permit = AtomicBool::new(true);
        }
        Ok(self)
    }

    /// Of a permit whose job is there now: whether it is admitted in time. One that was waited for
    /// has its room, if it has no key.
    pub(crate) fn admit_in_time(&self, expected: Expected) -> Result<(), JoinError> {
        let Some(backlog) = self.limits.time.as_ref() else {
            return Ok(());
        };
        let admits = match (self.slot(), expected) {
            _ if self.time.load(Relaxed) != 0 => true,
            (Some(slot), _) => backlog.admits_key(slot, expected.and_then(|(_, time)| time)),
            (None, Some((is_short, _))) => backlog.admits(is_short),
            (None, None) => backlog.admits_waiter(),
        };
        // `Builder::max_wait` has a limit that fits.
        let full = || JoinError::full(Full::Time(backlog.max_wait.as_micros() as u32));
        admits.then_some(()).ok_or_else(full)
    }

    /// Of a permit that was admitted: its job is about to come, and is not refused.
    pub(crate) fn reserve(&self) {
        if let Some(backlog) = self.limits.time.as_ref().filter(|_| self.key.is_none()) {
            self.set(backlog, backlog.reserve());
        }
    }

    /// Call before the job is queued. `time`: for how long it will hold a thread, if that is known.
    pub(crate) fn queue(&self, time: impl FnOnce() -> Option<Duration>, is_short: bool) {
        let is_counted = self.key.is_none() || self.slot().is_some();
        if let Some(backlog) = self.limits.time.as_ref().filter(|_| is_counted) {
            self.set(backlog, backlog.charge(time(), is_short, self.slot()));
        }
    }

    fn set(&self, backlog: &Backlog, charge: u32) {
        backlog.give_back(self.time.swap(charge, Relaxed), self.slot());
    }

    /// Call where its step has ended, which had the share of short jobs or not.
    pub(crate) fn count_step(&self, took: &Took, is_short: bool) {
        let is_short = is_short && self.key.is_none();
        if let Some(backlog) = self.limits.time.as_ref().filter(|_| is_short) {
            backlog.used(took.held);
        }
    }

    /// Call where the job is suspended, or will not run.
    pub(crate) fn pause(&self) {
        if let Some(backlog) = &self.limits.time {
            self.set(backlog, 0);
        }
    }

    /// Call where the job has ended. Any number of times.
    pub(crate) fn release(&self) {
        self.pause();
        let permits = self.limits.jobs.as_ref();
        if let Some((_, permits)) = permits.filter(|_| self.has_permit.swap(false, Relaxed)) {
            run_hook("the waker of a `Reserve`", || permits.add_permits(1));
        }
        if let Some(at) = self.slot.filter(|_| self.has_slot.swap(false, Relaxed)) {
            self.limits.keys.give_back(at);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.release();
    }
}
