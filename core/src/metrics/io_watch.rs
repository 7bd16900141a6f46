//! The watch of an I/O lane, and how long its probes waited.

use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};

use stallwatch::Watcher;

use super::histogram::AtomicHistogram;

#[derive(Default)]
pub(crate) struct IoWatch {
    /// Set before the lane has a handle, if it is watched.
    pub(crate) watcher: OnceLock<Watcher>,
    /// The watch's own.
    pub(crate) thread: OnceLock<ThreadId>,
    /// How long its probes waited.
    pub(crate) lag: OnceLock<Arc<AtomicHistogram>>,
}

impl IoWatch {
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
