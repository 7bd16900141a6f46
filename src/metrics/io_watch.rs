//! What the watch of an I/O lane counts.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

#[cfg(feature = "metrics")]
use histogram::AtomicHistogram;

#[cfg(feature = "metrics")]
use super::clock::nanos;
#[cfg(feature = "metrics")]
use super::{DurationHistogram, timings};
use crate::site::Site;

pub(crate) struct IoWatch {
    is_on: AtomicBool,
    /// The watch's own. It sets this, and looks whether the lane is closed after a `SeqCst`
    /// fence. So either it sees that, or the thread that closes the lane unparks it.
    pub(crate) thread: OnceLock<Thread>,
    stalls: AtomicU64,
    /// Jobs that held up the CPU lane.
    cpu_stalls: AtomicU64,
    by_culprit: Mutex<Vec<(Site, u64)>>,
    #[cfg(feature = "metrics")]
    lag: AtomicHistogram,
    /// Nanoseconds.
    #[cfg(feature = "metrics")]
    lag_sum: AtomicU64,
}

impl IoWatch {
    pub(crate) fn new() -> Self {
        Self {
            is_on: AtomicBool::new(false),
            thread: OnceLock::new(),
            stalls: AtomicU64::new(0),
            cpu_stalls: AtomicU64::new(0),
            by_culprit: Mutex::default(),
            #[cfg(feature = "metrics")]
            lag: timings::histogram(),
            #[cfg(feature = "metrics")]
            lag_sum: AtomicU64::new(0),
        }
    }

    /// The watch begins. Called before the lane has a handle.
    pub(crate) fn begin(&self) {
        self.is_on.store(true, Relaxed);
    }

    /// Whether this is the watch's thread: a hook of the user may be running.
    pub(crate) fn is_this_thread(&self) -> bool {
        let watch = self.thread.get();
        watch.is_some_and(|watch| watch.id() == thread::current().id())
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    pub(crate) fn add_stall(&self, culprit: Site) {
        self.stalls.fetch_add(1, Relaxed);
        let mut culprits = self
            .by_culprit
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match culprits.iter_mut().find(|(site, _)| *site == culprit) {
            Some((_, count)) => *count += 1,
            None => culprits.push((culprit, 1)),
        }
    }

    pub(crate) fn add_cpu_stall(&self) {
        self.cpu_stalls.fetch_add(1, Relaxed);
    }

    pub(crate) fn cpu_stalls(&self) -> u64 {
        self.cpu_stalls.load(Relaxed)
    }

    pub(crate) fn stalls(&self) -> u64 {
        self.stalls.load(Relaxed)
    }

    pub(crate) fn by_culprit(&self) -> Vec<(Site, u64)> {
        let culprits = self.by_culprit.lock();
        culprits.unwrap_or_else(PoisonError::into_inner).clone()
    }

    #[cfg_attr(
        not(feature = "metrics"),
        expect(unused_variables, clippy::unused_self)
    )]
    pub(crate) fn add_lag(&self, lag: Duration) {
        #[cfg(feature = "metrics")]
        {
            let nanos = nanos(lag);
            timings::add(&self.lag, nanos);
            self.lag_sum.fetch_add(nanos, Relaxed);
        }
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn lag(&self) -> DurationHistogram {
        let sum = Duration::from_nanos(self.lag_sum.load(Relaxed));
        DurationHistogram::new(self.lag.load(), sum)
    }
}
