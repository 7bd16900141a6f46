//! [`Limits`]: how much one priority takes on, in jobs and in time. [`Charge`]: what a job, or a
//! permit, has of both.

mod backlog;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{AcquireError, Semaphore};

use crate::error::JoinError;
use crate::pace::{Shares, Took};
use crate::panics::run_hook;
use crate::sync::{AtomicBool, AtomicU32, Ordering::Relaxed};
use backlog::Backlog;

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
}

impl Limits {
    #[cfg(test)]
    #[allow(dead_code, reason = "for the model")]
    pub(crate) fn is_free(&self) -> bool {
        self.time.as_ref().is_none_or(Backlog::is_free)
    }

    /// `None` without a limit. `shares`: those of the queue.
    pub(crate) fn new(setting: Limit, threads: usize, shares: &Arc<Shares>) -> Option<Arc<Self>> {
        let limits = Self {
            jobs: setting.jobs.map(|jobs| (jobs, Semaphore::new(jobs))),
            time: setting.wait.map(|wait| Backlog::new(wait, threads, shares)),
        };
        (limits.jobs.is_some() || limits.time.is_some()).then(|| Arc::new(limits))
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

    /// Admits a job from outside, now or not at all. `is_short`: `None` for a caller that would
    /// wait, whose job is not refused later.
    pub(crate) fn admit(
        self: &Arc<Self>,
        is_short: Option<bool>,
    ) -> Result<Box<Charge>, JoinError> {
        self.admit_in_time(is_short)?;
        if let Some((_, permits)) = &self.jobs {
            let permit = permits.try_acquire();
            permit.map_err(|_| JoinError::queue_full(None))?.forget();
        }
        let charge = Charge::new(self, self.jobs.is_some());
        if is_short.is_none() {
            charge.reserve();
        }
        Ok(charge)
    }

    fn admit_in_time(&self, is_short: Option<bool>) -> Result<(), JoinError> {
        let admits = |it: &Backlog| match is_short {
            Some(is_short) => it.admits(is_short),
            None => it.admits_waiter(),
        };
        let full = self.time.as_ref().filter(|it| !admits(it));
        full.map_or(Ok(()), |it| Err(JoinError::queue_full(Some(it.max_wait))))
    }

    /// Waits until it can admit a job. A wait for time holds no permit of the limit in jobs.
    pub(crate) async fn acquire(self: Arc<Self>) -> Result<Box<Charge>, AcquireError> {
        let mut charge = Charge::new(&self, false);
        if let Some(backlog) = &self.time {
            charge.time.store(backlog.acquire().await?, Relaxed);
        }
        if let Some((_, permits)) = &self.jobs {
            permits.acquire().await?.forget();
            charge.has_permit = AtomicBool::new(true);
        }
        Ok(charge)
    }
}

pub(crate) struct Charge {
    limits: Arc<Limits>,
    has_permit: AtomicBool,
    /// What it counts in the [`Backlog`], or 0.
    time: AtomicU32,
}

// Relaxed: but for the release, only the thread that queues or runs the job uses it.
impl Charge {
    fn new(limits: &Arc<Limits>, has_permit: bool) -> Box<Self> {
        Box::new(Self {
            limits: limits.clone(),
            has_permit: AtomicBool::new(has_permit),
            time: AtomicU32::new(0),
        })
    }

    /// For what needs no permit. It counts in time all the same.
    pub(crate) fn exempt(limits: &Arc<Limits>) -> Option<Box<Self>> {
        limits.time.is_some().then(|| Self::new(limits, false))
    }

    /// Of a permit, whose job is there now: whether it is admitted in time. One that was waited for
    /// has its room.
    pub(crate) fn admit(&self, is_short: bool) -> Result<(), JoinError> {
        match self.time.load(Relaxed) {
            0 => self.limits.admit_in_time(Some(is_short)),
            _ => Ok(()),
        }
    }

    /// Of a permit that was admitted: its job is about to come, and is not refused.
    pub(crate) fn reserve(&self) {
        if let Some(backlog) = &self.limits.time {
            backlog.give_back(self.time.swap(backlog.reserve(), Relaxed));
        }
    }

    /// Call before the job is queued. `time`: for how long it will hold a thread, if that is known.
    pub(crate) fn queue(&self, time: Option<Duration>, is_short: bool) {
        if let Some(backlog) = &self.limits.time {
            let charge = backlog.charge(time, is_short);
            backlog.give_back(self.time.swap(charge, Relaxed));
        }
    }

    /// Call where its step has ended, which had the share of short jobs or not.
    pub(crate) fn end(&self, took: &Took, is_short: bool) {
        if let Some(backlog) = self.limits.time.as_ref().filter(|_| is_short) {
            backlog.used(took.held);
        }
    }

    /// Call where the job is suspended, or will not run.
    pub(crate) fn pause(&self) {
        if let Some(backlog) = &self.limits.time {
            backlog.give_back(self.time.swap(0, Relaxed));
        }
    }

    /// Call where the job has ended. Any number of times.
    pub(crate) fn release(&self) {
        self.pause();
        let permits = self.limits.jobs.as_ref();
        if let Some((_, permits)) = permits.filter(|_| self.has_permit.swap(false, Relaxed)) {
            run_hook("the waker of a `Reserve`", || permits.add_permits(1));
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.release();
    }
}
