//! [`Held`]: how much the bridges of one priority have buffered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts nothing unless the lane has histograms. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Held(Option<Arc<AtomicUsize>>);

// Relaxed: a figure for a reader outside. What is subtracted was added before.
impl Held {
    pub(crate) fn new(is_recorded: bool) -> Self {
        Self(is_recorded.then(Arc::default))
    }

    pub(crate) fn add(&self, size: usize) {
        if let Self(Some(sum)) = self {
            sum.fetch_add(size, Relaxed);
        }
    }

    pub(crate) fn subtract(&self, size: usize) {
        if let Self(Some(sum)) = self {
            sum.fetch_sub(size, Relaxed);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |sum| sum.load(Relaxed) as u64)
    }
}
