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
        if others & here != 0 {
            here = platform::leave_cores(are_taken).map_or(here, bit);
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::*;

    #[test]
    fn a_thread_leaves_the_core_of_another_one_and_may_come_back() {
        let mask = sched_getaffinity(None).unwrap();
        let taken = (0..64).find(|core| mask.is_set(*core)).unwrap();
        let mut only = CpuSet::new();
        only.set(taken);
        sched_setaffinity(None, &only).unwrap();
        let cores = AtomicU64::new(bit(taken));
        let mut place = Place::among(&cores);
        place.settle();
        assert_eq!(place.own, bit(taken), "it has no other");
        cores.store(bit(taken), Relaxed);
        place.own = 0;
        if mask.count() > 1 {
            sched_setaffinity(None, &mask).unwrap();
            place.settle();
            assert_ne!(place.own, bit(taken));
            assert_eq!(cores.load(Relaxed), bit(taken) | place.own);
            assert_eq!(sched_getaffinity(None).unwrap(), mask);
        }
        drop(place);
        assert_eq!(cores.load(Relaxed) & !bit(taken), 0);
    }
}
