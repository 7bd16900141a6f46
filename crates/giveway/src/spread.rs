//! Keeps threads of one kind on different cores: [`Cores`], and a [`Place`] for each thread.
//!
//! The kernel balances cores by the weights of their threads, over some time. A neighbour of much
//! weight that computes for a twentieth of the time on one core counts for more than two threads
//! that give way. The kernel then leaves both of them on the other core, where each has a half,
//! and a thread of less weight has what the neighbour leaves.
//!
//! So a thread that is about to compute looks whether another one of its kind is on its core. If
//! so, it forbids itself the cores on which there is one, and then allows them again: it is
//! elsewhere by then, and the kernel may move it as before.
//!
//! The set of cores is a hint: a thread may be moved while it runs, and two that are on one core
//! share a bit.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::platform;

/// The cores on which threads of one kind compute, for threads that are to keep to different
/// ones.
///
/// # Examples
///
/// ```
/// static CORES: giveway::Cores = giveway::Cores::new();
/// std::thread::spawn(|| {
///     let mut place = CORES.place();
///     for job in 0..3 {
///         // Leaves the core if another thread of `CORES` is there.
///         place.settle();
///         // .. compute
///     }
/// })
/// .join()
/// .unwrap();
/// ```
#[derive(Debug, Default)]
pub struct Cores(AtomicU64);

impl Cores {
    /// None of them computes yet.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// For a thread of that kind.
    pub const fn place(&self) -> Place<'_> {
        Place {
            cores: &self.0,
            own: 0,
        }
    }
}

/// Where a thread computes, as it last saw; made by [`Cores::place`].
#[derive(Debug)]
pub struct Place<'a> {
    /// Where the threads of its kind do.
    cores: &'a AtomicU64,
    /// Its own bit, or 0.
    own: u64,
}

/// More cores than bits share them.
const fn bit(core: usize) -> u64 {
    1 << (core % 64)
}

impl Place<'_> {
    /// Leaves the core if another thread of this kind is there. Call it before what computes.
    ///
    /// It asks for the number of the core, some 10 ns, and sets the thread's CPU mask twice if it
    /// leaves: then it keeps to the cores that it could use at that time, also if its cgroup gets
    /// more. A thread that may use one core stays there. Does nothing on other platforms than Linux.
    #[inline]
    pub fn settle(&mut self) {
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
        let cores = Cores(AtomicU64::new(bit(taken)));
        let mut place = cores.place();
        place.settle();
        assert_eq!(place.own, bit(taken), "it has no other");
        cores.0.store(bit(taken), Relaxed);
        place.own = 0;
        if mask.count() > 1 {
            sched_setaffinity(None, &mask).unwrap();
            place.settle();
            assert_ne!(place.own, bit(taken));
            assert_eq!(cores.0.load(Relaxed), bit(taken) | place.own);
            assert_eq!(sched_getaffinity(None).unwrap(), mask);
        }
        drop(place);
        assert_eq!(cores.0.load(Relaxed) & !bit(taken), 0);
    }
}
