//! Whether the kernel gives a thread that wakes up a core at once, though all cores compute, and
//! what the process does if not.
//!
//! Since 6.13 Linux has the preemption mode *lazy*. There a wake-up from another core sends no
//! interrupt to a core that computes in user mode: the woken thread waits for that core's next
//! tick, up to 4 ms, whatever the nice values. Any interrupt ends the wait, and so does
//! `membarrier`, which interrupts each core that runs a thread of this process. `measure.rs` finds
//! out which mode the kernel has, and `interrupts.rs` is the thread that interrupts.

#[cfg(all(target_os = "linux", not(miri)))]
mod interrupts;
#[cfg(all(target_os = "linux", not(miri)))]
mod measure;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crossbeam_utils::atomic::AtomicCell;

#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) use interrupts::{note_work, start};

/// How soon a thread that wakes up gets a core that another thread computes on.
///
/// [`preemption`] returns it.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use twolane::kernel::{Preemption, preemption};
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// // The process has not computed yet, or the kernel is older than 6.13.
/// assert_ne!(preemption(), Preemption::Lazy);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preemption {
    /// It has not been measured: the process has not used half a core yet, or has no lane. Or it
    /// could not be: the process may use one core, others have the cores, a sandbox refuses `membarrier` or
    /// the nice value, or the platform is not Linux.
    Unknown,
    /// At once.
    AtOnce,
    /// At the next tick of that core, if a thread on another core woke it: after up to 4 ms.
    Lazy,
}

/// `None`: nothing yet, and that may change.
static FOUND: AtomicCell<Option<Preemption>> = AtomicCell::new(None);
static SENT: AtomicU64 = AtomicU64::new(0);

/// Returns how soon a thread that wakes up gets a core that another thread computes on.
///
/// Linux before 6.13 and other modes than *lazy* preempt at once. Else the process has it measured,
/// once, when it has a lane and uses half a core or more for 10 ms: by some threads, which take 0.1
/// to 0.5 s. If the kernel is lazy, the log has a warning, and a thread of the process,
/// `twolane-preempt`, interrupts its cores while the process computes:
/// `twolane::guide::kernels`.
///
/// # Examples
///
/// ```
/// use twolane::kernel::{Preemption, preemption};
/// if preemption() == Preemption::Lazy {
///     println!("boot with preempt=full");
/// }
/// ```
pub fn preemption() -> Preemption {
    FOUND.load().unwrap_or(Preemption::Unknown)
}

/// Returns how often this process has interrupted its cores. 0 on a kernel that gives a woken
/// thread a core at once: see [`preemption`](crate::kernel::preemption).
///
/// # Examples
///
/// ```
/// println!("{} interrupts", twolane::kernel::core_interrupts());
/// ```
pub fn core_interrupts() -> u64 {
    SENT.load(Relaxed)
}

/// Takes `found` for what was found; `None`: nothing yet. For tests, and for benches that compare
/// lanes with and without interrupts: no part of the interface.
pub fn pretend(found: Option<Preemption>) {
    FOUND.store(found);
}

/// Here a push wakes no thread, and no lane needs one.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn note_work() {}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn start() -> std::io::Result<()> {
    Ok(())
}
