//! Whether the kernel gives a thread that wakes up a core at once, though all cores compute, and
//! what the process does if not.
//!
//! Since 6.13 Linux has the preemption mode *lazy*. There a wake-up from another core sends no
//! interrupt to a core that computes in user mode: the woken thread waits for that core's next
//! tick, up to 4 ms, whatever the nice values. Any interrupt ends the wait, and so does
//! `membarrier`, which interrupts each core that runs a thread of this process.
//!
//! `measure.rs` finds out which mode the kernel has, and `interrupts.rs` is the thread that
//! interrupts. What they have found is one byte, here.

#[cfg(all(target_os = "linux", not(miri)))]
mod interrupts;
#[cfg(all(target_os = "linux", not(miri)))]
mod measure;

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) use interrupts::{resume, start};

/// How soon a thread that wakes up gets a core that another thread computes on; returned by
/// [`preemption`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preemption {
    /// It has not been measured: the process has not used half a core yet. Or it could not be: the
    /// process may use one core, others have the cores, a sandbox refuses `membarrier` or the nice
    /// value, or the platform is not Linux.
    Unknown,
    /// At once.
    AtOnce,
    /// At the next tick of that core, if a thread on another core woke it: after up to 4 ms.
    Lazy,
}

/// 0: nothing yet, and that may change. Else the [`Preemption`] that was found, plus 1.
///
/// Relaxed, here and below: it orders nothing else.
static FOUND: AtomicU8 = AtomicU8::new(0);
static SENT: AtomicU64 = AtomicU64::new(0);

/// What was found, if something was.
fn found() -> Option<Preemption> {
    let all = [Preemption::Unknown, Preemption::AtOnce, Preemption::Lazy];
    let is_it = |it: &Preemption| *it as u8 + 1 == FOUND.load(Relaxed);
    all.into_iter().find(is_it)
}

/// Returns how soon a thread that wakes up gets a core that another thread computes on.
///
/// Linux before 6.13 and other modes than *lazy* preempt at once. Else the process has it measured,
/// once, when it uses half a core or more for 10 ms after [`start`](crate::start): by some threads,
/// which take 0.1 to 0.5 s. If the kernel is lazy, the log has a warning, and a thread of the
/// process, `giveway-preempt`, interrupts its cores once in 0.3 ms while the process computes. Then
/// most threads that wake up wait for at most that long, and what computes does some 4 % less.
///
/// # Examples
///
/// ```
/// use giveway::{Preemption, preemption};
/// if preemption() == Preemption::Lazy {
///     println!("boot with preempt=full");
/// }
/// ```
pub fn preemption() -> Preemption {
    found().unwrap_or(Preemption::Unknown)
}

/// Returns how often this process has interrupted its cores. 0 on a kernel that gives a woken
/// thread a core at once: see [`preemption`].
///
/// # Examples
///
/// ```
/// println!("{} interrupts", giveway::core_interrupts());
/// ```
pub fn core_interrupts() -> u64 {
    SENT.load(Relaxed)
}

/// `None`: nothing yet.
fn set_found(found: Option<Preemption>) {
    FOUND.store(found.map_or(0, |it| it as u8 + 1), Relaxed);
}

/// Sets how the kernel preempts, in place of a measurement.
///
/// [`AtOnce`](Preemption::AtOnce): nothing is measured, and the process does not interrupt its
/// cores. So set it before [`start`](crate::start) where you boot with `preempt=full`, or where the
/// interrupts cost more than they bring; later it ends them within 0.1 s.
/// [`Lazy`](Preemption::Lazy): the process interrupts its cores without having measured.
/// [`Unknown`](Preemption::Unknown), the default: it is measured, anew if it was before.
///
/// The thread `giveway-preempt` ends at `AtOnce`. If another setting follows, the next call of
/// [`start`](crate::start) starts it.
///
/// # Examples
///
/// ```
/// use giveway::{Preemption, assume, preemption};
///
/// fn main() -> std::io::Result<()> {
///     assume(Preemption::AtOnce); // this machine boots with preempt=full
///     giveway::start()?;
///     assert_eq!(preemption(), Preemption::AtOnce);
///     Ok(())
/// }
/// ```
pub fn assume(preemption: Preemption) {
    set_found(Some(preemption).filter(|it| *it != Preemption::Unknown));
}

/// Here no thread interrupts.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn resume() {}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn start() -> std::io::Result<()> {
    Ok(())
}
