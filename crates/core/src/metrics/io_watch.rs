//! The watch of an I/O lane, and how long its probes waited.

use std::sync::{Arc, OnceLock};
use std::thread::ThreadId;

use stallwatch::Watcher;

use super::histogram::AtomicHistogram;

#[derive(Default)]
pub(crate) struct IoWatch {
    /// Set before the lane has a handle, if it is watched.
    pub(crate) watcher: OnceLock<Watcher>,
    /// The watch's own, where the hooks of the user run.
    pub(crate) thread: OnceLock<ThreadId>,
    /// How long its probes waited.
    pub(crate) lag: OnceLock<Arc<AtomicHistogram>>,
}

impl IoWatch {
    pub(crate) fn stop(&self) {
        if let Some(watcher) = self.watcher.get() {
            watcher.stop();
        }
    }
}
