//! [`Held`]: how much the bridges of one priority have buffered.

#[cfg(feature = "metrics")]
use std::sync::Arc;

#[cfg(feature = "metrics")]
use crate::shard::Sums;

/// The sum of the buffers of all bridges that share it. It is nothing, and costs an
/// item nothing, if the lane does not record it.
#[derive(Clone, Default)]
pub(crate) struct Held {
    #[cfg(feature = "metrics")]
    bytes: Option<Arc<Sums<1>>>,
}

#[cfg(feature = "metrics")]
impl Held {
    pub(crate) fn new(is_recorded: bool) -> Self {
        Self {
            bytes: is_recorded.then(Arc::default),
        }
    }

    pub(crate) fn add(&self, size: usize) {
        if let Some(bytes) = &self.bytes {
            bytes.add(0, size as u64);
        }
    }

    pub(crate) fn subtract(&self, size: usize) {
        if let Some(bytes) = &self.bytes {
            bytes.subtract(0, size as u64);
        }
    }

    /// Returns the sum. A reader that comes between an item's two ends may find the
    /// subtraction alone; such a sum is below zero and reads as 0.
    pub(crate) fn bytes(&self) -> u64 {
        let sum = self.bytes.as_ref().map_or(0, |bytes| bytes.get(0));
        u64::try_from(sum as i64).unwrap_or(0)
    }
}

#[cfg(not(feature = "metrics"))]
impl Held {
    pub(crate) fn add(&self, _size: usize) {}

    pub(crate) fn subtract(&self, _size: usize) {}
}
