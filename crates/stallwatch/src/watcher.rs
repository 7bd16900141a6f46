//! [`Watcher`]: the handle of a watch that runs, and what it has counted.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};

use crate::name::Name;
use crate::stall::Stall;

/// A watch that runs. It ends when this is dropped, or with its runtime.
///
/// Returned by [`Watch::start`](crate::Watch::start).
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use stallwatch::Watch;
///
/// let watcher = Watch::new().start(&tokio::runtime::Handle::current()).unwrap();
/// // The service runs.
/// println!("{} stalls so far", watcher.stalls());
/// // The watch ends.
/// drop(watcher);
/// # }
/// ```
#[derive(Debug)]
#[must_use = "the watch ends when this is dropped"]
pub struct Watcher {
    pub(crate) shared: Arc<Shared>,
}

/// Without a lock or a channel for the end: a forked child, which drops its copy of the
/// [`Watcher`], may find these taken by the thread that it lacks.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    is_stopped: AtomicBool,
    /// The watch's own, once it runs.
    thread: OnceLock<Thread>,
    counts: Mutex<Counts>,
}

/// How many stalls were reported.
#[derive(Debug, Default)]
struct Counts {
    of_pools: u64,
    by_culprit: HashMap<Option<Name>, u64>,
}

impl Watcher {
    /// Returns how many polls of the runtime were reported.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use stallwatch::Watch;
    ///
    /// let watcher = Watch::new().start(&tokio::runtime::Handle::current()).unwrap();
    /// println!("stalls_total {}", watcher.stalls());
    /// # }
    /// ```
    pub fn stalls(&self) -> u64 {
        self.shared.counts().by_culprit.values().sum()
    }

    /// Returns how many pieces of work of its [pools](crate::Watch::pool) were reported.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use stallwatch::{Pool, Watch};
    ///
    /// let pool = Pool::new("Cut it into smaller slices");
    /// let watch = Watch::new().pool(&pool);
    /// let watcher = watch.start(&tokio::runtime::Handle::current()).unwrap();
    /// println!("pool_stalls_total {}", watcher.pool_stalls());
    /// # }
    /// ```
    pub fn pool_stalls(&self) -> u64 {
        self.shared.counts().of_pools
    }

    /// Returns how many polls of the runtime were reported of each culprit, most first. Code that
    /// the watch does not know is `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use stallwatch::Watch;
    ///
    /// let watcher = Watch::new().start(&tokio::runtime::Handle::current()).unwrap();
    /// for (culprit, stalls) in watcher.stalls_by_culprit() {
    ///     let culprit = culprit.map_or("no name".to_owned(), |name| name.to_string());
    ///     println!("{culprit}: {stalls}");
    /// }
    /// # }
    /// ```
    pub fn stalls_by_culprit(&self) -> Vec<(Option<Name>, u64)> {
        let culprits = self.shared.counts().by_culprit.clone();
        let mut culprits = Vec::from_iter(culprits);
        culprits.sort_by_key(|(_, count)| Reverse(*count));
        culprits
    }

    /// Ends the watch, and waits for nothing: its thread ends soon. It may still report what it
    /// has just seen.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use stallwatch::Watch;
    ///
    /// let watcher = Watch::new().start(&tokio::runtime::Handle::current()).unwrap();
    /// watcher.stop();
    /// // The counts are still there.
    /// println!("{} stalls", watcher.stalls());
    /// # }
    /// ```
    pub fn stop(&self) {
        self.shared.is_stopped.store(true, SeqCst);
        // A thread that has just begun may miss this. It then ends after one look.
        if let Some(thread) = self.shared.thread.get() {
            thread.unpark();
        }
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
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(SeqCst)
    }

    pub(crate) fn count(&self, stall: &Stall) {
        let mut counts = self.counts();
        match stall.is_of_pool() {
            true => counts.of_pools += 1,
            false => *counts.by_culprit.entry(stall.name).or_default() += 1,
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
