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

/// For 1,024 cores, as many as a CPU mask has here. More share bits.
const WORDS: usize = 16;

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
pub struct Cores([AtomicU64; WORDS]);

impl Cores {
    /// None of them computes yet.
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; WORDS])
    }

    /// For a thread of that kind.
    pub const fn place(&self) -> Place<'_> {
        Place {
            cores: &self.0,
            own: None,
        }
    }
}

/// Where a thread computes, as it last saw; made by [`Cores::place`].
#[derive(Debug)]
pub struct Place<'a> {
    /// Where the threads of its kind do.
    cores: &'a [AtomicU64; WORDS],
    /// Its own.
    own: Option<usize>,
}

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
        let here = platform::core();
        if self.own != Some(here) || !self.is_taken(here) {
            self.take(here);
        }
    }

    const fn word(&self, core: usize) -> &AtomicU64 {
        &self.cores[core / 64 % WORDS]
    }

    fn is_taken(&self, core: usize) -> bool {
        self.word(core).load(Relaxed) & bit(core) != 0
    }

    fn take(&mut self, mut here: usize) {
        self.leave();
        if self.is_taken(here) {
            here = platform::leave_cores(|core| self.is_taken(*core)).unwrap_or(here);
        }
        self.own = Some(here);
        self.word(here).fetch_or(bit(here), Relaxed);
    }

    fn leave(&mut self) {
        if let Some(own) = self.own.take() {
            self.word(own).fetch_and(!bit(own), Relaxed);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::*;

    impl Cores {
        /// As a thread there does it.
        fn take(&self, core: usize) -> Place<'_> {
            self.0[core / 64].fetch_or(bit(core), Relaxed);
            let own = Some(core);
            Place {
                own,
                ..self.place()
            }
        }
    }

    #[test]
    fn a_thread_leaves_the_core_of_another_one_and_may_come_back() {
        let mask = sched_getaffinity(None).unwrap();
        let taken = (0..CpuSet::MAX_CPU).find(|core| mask.is_set(*core));
        let taken = taken.unwrap();
        let mut only = CpuSet::new();
        only.set(taken);
        sched_setaffinity(None, &only).unwrap();
        let cores = Cores::new();
        let other = cores.take(taken);
        let mut place = cores.place();
        place.settle();
        assert_eq!(place.own, Some(taken), "it has no other");
        place.own = None;
        if mask.count() > 1 {
            sched_setaffinity(None, &mask).unwrap();
            place.settle();
            assert_ne!(place.own, Some(taken));
            assert!(place.is_taken(taken) && place.is_taken(place.own.unwrap()));
            assert_eq!(sched_getaffinity(None).unwrap(), mask);
        }
        drop((place, other));
        assert!(cores.0.iter().all(|word| word.load(Relaxed) == 0));
    }

    /// Two shared a bit: a thread left a free core, and one that ended freed the other's.
    #[test]
    fn cores_64_apart_are_two() {
        let cores = Cores::new();
        let (low, high) = (cores.take(6), cores.take(70));
        drop(low);
        assert!(!high.is_taken(6) && high.is_taken(70));
    }

    /// The kernel was asked for an empty mask.
    #[test]
    fn a_thread_with_no_other_core_asks_for_none() {
        let refused = platform::leave_cores(|_| true).unwrap_err();
        assert_eq!(refused.raw_os_error(), None);
    }
}
