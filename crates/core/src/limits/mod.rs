//! [`Limits`]: how much one priority takes on, in jobs and in time. [`Charge`]: what a job, or a
//! permit, has of both.

mod backlog;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::sync::{AcquireError, Semaphore};

use crate::error::JoinError;
use crate::metrics::call_sites::Mean;
use crate::metrics::clock::now;
use crate::panics::run_hook;
use crate::sync::{AtomicBool, AtomicU32, Ordering::Relaxed};
pub(crate) use backlog::Backlog;

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
    /// `None` without a limit.
    pub(crate) fn new(setting: Limit, threads: usize) -> Option<Arc<Self>> {
        let limits = Self {
            jobs: setting.jobs.map(|jobs| (jobs, Semaphore::new(jobs))),
            time: setting.wait.map(|wait| Backlog::new(wait, threads)),
        };
        (limits.jobs.is_some() || limits.time.is_some()).then(|| Arc::new(limits))
    }

    pub(crate) fn semaphores(&self) -> impl Iterator<Item = &Semaphore> {
        let rooms = self.time.iter().flat_map(Backlog::semaphores);
        self.jobs.iter().map(|(_, permits)| permits).chain(rooms)
    }

    /// The limit in jobs, and how many of its permits are in use.
    pub(crate) fn jobs(&self) -> Option<(usize, usize)> {
        let (jobs, permits) = self.jobs.as_ref()?;
        Some((*jobs, jobs.saturating_sub(permits.available_permits())))
    }

    /// Admits a job from outside, now or not at all.
    pub(crate) fn admit(self: &Arc<Self>, is_short: bool) -> Result<Box<Charge>, JoinError> {
        let is_full = |it: &&Backlog| !it.admits(is_short);
        if let Some(full) = self.time.as_ref().filter(is_full) {
            return Err(JoinError::queue_full(Some(full.max_wait)));
        }
        if let Some((_, permits)) = &self.jobs {
            let permit = permits.try_acquire();
            permit.map_err(|_| JoinError::queue_full(None))?.forget();
        }
        Ok(Charge::new(self, self.jobs.is_some()))
    }

    /// Waits until it can admit a job.
    pub(crate) async fn acquire(self: Arc<Self>) -> Result<Box<Charge>, AcquireError> {
        if let Some((_, permits)) = &self.jobs {
            permits.acquire().await?.forget();
        }
        let charge = Charge::new(&self, self.jobs.is_some());
        if let Some(backlog) = &self.time {
            charge.time.store(backlog.acquire().await?, Relaxed);
        }
        Ok(charge)
    }
}

pub(crate) struct Charge {
    limits: Arc<Limits>,
    has_permit: AtomicBool,
    /// What it counts in the [`Backlog`], or 0.
    time: AtomicU32,
    /// When, in nanoseconds.
    popped: AtomicU64,
    /// It counts with all that its steps have left, and these have taken so long, in nanoseconds.
    pub(crate) is_stream: bool,
    so_far: AtomicU64,
}

// Relaxed: but for the release, only the thread that queues or runs the job uses it.
impl Charge {
    fn new(limits: &Arc<Limits>, has_permit: bool) -> Box<Self> {
        Box::new(Self {
            limits: limits.clone(),
            has_permit: AtomicBool::new(has_permit),
            time: AtomicU32::new(0),
            popped: AtomicU64::new(0),
            is_stream: false,
            so_far: AtomicU64::new(0),
        })
    }

    /// For what needs no permit. It counts in time all the same.
    pub(crate) fn exempt(limits: &Arc<Limits>) -> Option<Box<Self>> {
        limits.time.is_some().then(|| Self::new(limits, false))
    }

    /// Counts as a job that takes so long, as far as is known.
    pub(crate) fn set(&self, time: Option<Duration>, is_short: bool) {
        if let Some(backlog) = &self.limits.time {
            let before = self.time.swap(backlog.charge(time, is_short), Relaxed);
            backlog.give_back(before);
        }
    }

    /// Call before the job is queued. `time`: that of its site.
    pub(crate) fn queue(&self, time: &Mean, is_short: bool) {
        let so_far = Duration::from_nanos(self.so_far.load(Relaxed));
        self.set(time.get().map(|all| all.saturating_sub(so_far)), is_short);
    }

    /// Call where the job is popped.
    pub(crate) fn begin(&self) {
        if self.limits.time.is_some() {
            self.popped.store(now(), Relaxed);
        }
    }

    /// Call where its step has ended. `is_over`: and the job with it.
    pub(crate) fn end(&self, is_over: bool, time: &Mean) {
        let Some(backlog) = &self.limits.time else {
            return;
        };
        let mut took = now().saturating_sub(self.popped.load(Relaxed));
        if self.is_stream {
            took += self.so_far.fetch_add(took, Relaxed);
        }
        let took = Duration::from_nanos(took);
        if is_over || !self.is_stream {
            backlog.mean.add(took);
            time.add(took);
        }
    }

    /// Call where the job is suspended.
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
