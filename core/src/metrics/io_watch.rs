//! The watch of an I/O lane, and what it counts.

#[cfg(feature = "metrics")]
use std::sync::Arc;
use std::sync::OnceLock;
#[cfg(feature = "metrics")]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, ThreadId};
#[cfg(feature = "metrics")]
use std::time::Duration;

#[cfg(feature = "metrics")]
use histogram::AtomicHistogram;
use stallwatch::Watcher;

#[cfg(feature = "metrics")]
use super::clock::nanos;
#[cfg(feature = "metrics")]
use super::{DurationHistogram, timings};

#[derive(Default)]
pub(crate) struct IoWatch {
    /// Set before the lane has a handle, if it is watched.
    pub(crate) watcher: OnceLock<Watcher>,
    /// The watch's own.
    pub(crate) thread: OnceLock<ThreadId>,
    #[cfg(feature = "metrics")]
    pub(crate) lag: Arc<Lag>,
}

impl IoWatch {
    pub(crate) fn stalls(&self) -> u64 {
        self.watcher.get().map_or(0, Watcher::stalls)
    }

    pub(crate) fn cpu_stalls(&self) -> u64 {
        self.watcher.get().map_or(0, Watcher::pool_stalls)
    }

    /// Whether this is the watch's thread: a hook of the user may be running.
    pub(crate) fn is_this_thread(&self) -> bool {
        self.thread.get() == Some(&thread::current().id())
    }

    pub(crate) fn stop(&self) {
        if let Some(watcher) = self.watcher.get() {
            watcher.stop();
        }
    }
}

/// How long its probes waited.
#[cfg(feature = "metrics")]
pub(crate) struct Lag {
    waits: AtomicHistogram,
    /// Nanoseconds.
    sum: AtomicU64,
}

#[cfg(feature = "metrics")]
impl Default for Lag {
    fn default() -> Self {
        Self {
            waits: timings::histogram(),
            sum: AtomicU64::new(0),
        }
    }
}

#[cfg(feature = "metrics")]
impl Lag {
    pub(crate) fn add(&self, lag: Duration) {
        let nanos = nanos(lag);
        timings::add(&self.waits, nanos);
        self.sum.fetch_add(nanos, Relaxed);
    }

    pub(crate) fn read(&self) -> DurationHistogram {
        let sum = Duration::from_nanos(self.sum.load(Relaxed));
        DurationHistogram::new(self.waits.load(), sum)
    }
}
