//! A lane's queue, as the models have it.

use loom::sync::atomic::Ordering::{AcqRel, Acquire, SeqCst};
use loom::sync::atomic::{AtomicUsize, fence};

/// Its length only, as one atomic: a model's own lock, or `SeqCst`, would order
/// what the fences are for.
pub struct Length(AtomicUsize);

impl Length {
    pub fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// With the fence that `Opening::pushed` has.
    pub fn push(&self) {
        self.0.fetch_add(1, AcqRel);
        fence(SeqCst);
    }

    pub fn pop(&self) -> bool {
        let one_less = |length: usize| length.checked_sub(1);
        self.0.fetch_update(AcqRel, Acquire, one_less).is_ok()
    }

    pub fn is_empty(&self) -> bool {
        self.0.load(Acquire) == 0
    }
}
