//! [`Doze`]: how the ticker, which looks for work now and then, stops looking, and which push has
//! it begin again. (Workers sleep in `pool/`.)
//!
//! A push pushes, and then looks whether the thread sleeps. The thread notes that it sleeps, and
//! then looks for work. Each has a `SeqCst` fence in between, so one of the two sees the
//! other: the push wakes the thread, or the thread finds the job. (The loom model is in
//! `tests/loom`.)
//!
//! **Obligation.** [liveness] A push is found by the last look, or it begins the looks again.

use crate::sync::{AtomicBool, Ordering::SeqCst, fence};

/// Whether the thread sleeps. (One that is in a `static` is made of its field: loom's atomics have
/// no constant.)
pub(crate) struct Doze(pub(crate) AtomicBool);

impl Doze {
    /// The thread is about to sleep. False if there is work after all.
    pub(crate) fn begin(&self, is_empty: impl FnOnce() -> bool) -> bool {
        // A swap, which costs no more, for loom: it does not order a plain store after the swap of
        // a push that it has not seen.
        self.0.swap(true, SeqCst);
        fence(SeqCst);
        if is_empty() {
            return true;
        }
        self.0.swap(false, SeqCst);
        false
    }

    /// The thread sleeps until this is false.
    pub(crate) fn lasts(&self) -> bool {
        self.0.load(SeqCst)
    }

    /// Call after a push and a fence. True if the caller has to unpark the thread.
    pub(crate) fn end(&self) -> bool {
        self.0.swap(false, SeqCst)
    }
}
