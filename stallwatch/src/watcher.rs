//! [`Watcher`]: the handle of a watch that runs, and what it has counted.

use std::cmp::Reverse;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};

use crate::name::Name;

/// A watch that runs. It ends when this is dropped, or with its runtime.
///
/// Returned by [`Watch::start`](crate::Watch::start).
#[must_use = "the watch ends when this is dropped"]
pub struct Watcher {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Default)]
pub(crate) struct Shared {
    is_stopped: AtomicBool,
    has_ended: AtomicBool,
    /// The watch's own. It sets this, and looks whether it is stopped after a `SeqCst` fence. So
    /// either it sees that, or the thread that stops it unparks it.
    thread: OnceLock<Thread>,
    stalls: AtomicU64,
    pool_stalls: AtomicU64,
    by_culprit: Mutex<Vec<(Option<Name>, u64)>>,
}

impl Watcher {
    /// Returns how many polls of the runtime were reported. Suspicions do not count.
    pub fn stalls(&self) -> u64 {
        self.shared.stalls.load(Relaxed)
    }

    /// Returns how many pieces of work of its [pool](crate::Watch::pool) were reported.
    pub fn pool_stalls(&self) -> u64 {
        self.shared.pool_stalls.load(Relaxed)
    }

    /// Returns how many polls of the runtime were reported of each culprit, most first. Code that
    /// the watch does not know is `None`.
    pub fn stalls_by_culprit(&self) -> Vec<(Option<Name>, u64)> {
        let culprits = self.shared.by_culprit.lock();
        let mut culprits = culprits.unwrap_or_else(PoisonError::into_inner).clone();
        culprits.sort_by_key(|(_, count)| Reverse(*count));
        culprits
    }

    /// Ends the watch, and waits for nothing: its thread ends soon. It may still report what it
    /// has just seen.
    pub fn stop(&self) {
        self.shared.is_stopped.store(true, SeqCst);
        fence(SeqCst);
        if let Some(thread) = self.shared.thread.get() {
            thread.unpark();
        }
    }

    /// Returns whether the watch goes on. It ends when it is stopped, and with its runtime. A hook
    /// that runs is part of it.
    pub fn is_running(&self) -> bool {
        !self.shared.has_ended.load(SeqCst)
    }

    /// Returns whether the calling thread is that of the watch, which calls the hooks of
    /// [`Watch::on_stall`](crate::Watch::on_stall).
    pub fn is_this_thread(&self) -> bool {
        let watch = self.shared.thread.get();
        self.is_running() && watch.is_some_and(|watch| watch.id() == thread::current().id())
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher")
            .field("is_running", &self.is_running())
            .field("stalls", &self.stalls())
            .field("pool_stalls", &self.pool_stalls())
            .finish()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// The watch's thread begins.
    pub(crate) fn begin(&self) {
        let _ = self.thread.set(thread::current());
        fence(SeqCst);
    }

    /// The watch's thread is free.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, SeqCst);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(SeqCst)
    }

    pub(crate) fn add_stall(&self, culprit: Option<Name>) {
        self.stalls.fetch_add(1, Relaxed);
        let culprits = self.by_culprit.lock();
        let mut culprits = culprits.unwrap_or_else(PoisonError::into_inner);
        match culprits.iter_mut().find(|(name, _)| *name == culprit) {
            Some((_, count)) => *count += 1,
            None => culprits.push((culprit, 1)),
        }
    }

    pub(crate) fn add_pool_stall(&self) {
        self.pool_stalls.fetch_add(1, Relaxed);
    }
}
