//! Keeps the threads of `High` on different cores.
//!
//! The kernel balances cores by the weights of their threads, over some time. A neighbour of much
//! weight that computes for a twentieth of the time on one core counts for more than two threads of
//! a lane. The kernel then leaves both threads of `High` on the other core, where each has a half,
//! and a thread of `Normal` has what the neighbour leaves.
//!
//! So a thread that is about to run a job of `High` looks whether another one is on its core. If so,
//! it forbids itself the cores on which there is one, and then allows them again: it is elsewhere by
//! then, and the kernel may move it as before.
//!
//! The set of cores is a hint: a thread may be moved while it runs, and two that are on one core
//! share a bit.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::platform;

/// Where a thread runs jobs, as it last saw.
pub(crate) struct Place<'a> {
    /// Where the threads of its level do.
    cores: &'a AtomicU64,
    /// Its own bit, or 0.
    own: u64,
}

/// More cores than bits share them.
const fn bit(core: usize) -> u64 {
    1 << (core % 64)
}

impl<'a> Place<'a> {
    pub(crate) fn among(cores: &'a AtomicU64) -> Self {
        Self { cores, own: 0 }
    }

    /// Call before a step.
    #[inline]
    pub(crate) fn settle(&mut self) {
        let here = bit(platform::core());
        if self.own != here || self.cores.load(Relaxed) & here == 0 {
            self.take(here);
        }
    }

    fn take(&mut self, mut here: u64) {
        let others = self.cores.fetch_and(!self.own, Relaxed) & !self.own;
        let are_taken = |core: &usize| others & bit(*core) != 0;
        if others & here != 0 && platform::leave_cores(are_taken).is_ok() {
            here = bit(platform::core());
        }
        self.own = here;
        self.cores.fetch_or(here, Relaxed);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.cores.fetch_and(!self.own, Relaxed);
    }
}
