//! A thread's niceness on Linux: its nice value, its slice, and whether it is in the kernel's
//! idle class.
//!
//! A nice value is between 0 (or the value that the process was started with) and 19.
//! Raising it needs no privilege, lowering it does. A new thread inherits the niceness
//! of the thread that spawns it; hence `starter.rs`.
//!
//! A nice value decides how much of a core a thread gets, not when. Since 6.6 the kernel lets a
//! thread that has just got its core keep it for a slice, or until the next tick, though a
//! heavier one wakes up: for milliseconds, and again each time that the thread sleeps and
//! wakes. Since 6.12 a thread may ask for a slice of its own. Then one with a shorter slice,
//! which most have, gets the core when it wakes up.
//!
//! On other platforms a nice value belongs to the whole process. There these functions
//! do nothing.

use std::io;
use std::time::Duration;

use super::platform;

pub(crate) const MAX_NICE: u8 = 19;

/// Whether a thread can have a nice value of its own here.
pub(crate) const SUPPORTED: bool = cfg!(target_os = "linux");

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadNiceness {
    pub(crate) nice: i32,
    pub(crate) class: Class,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Class {
    /// With the kernel's slice.
    #[default]
    Normal,
    /// With a slice of its own.
    Slice(Duration),
    /// `SCHED_IDLE`.
    Idle,
}

/// Asks the kernel for short slices for the calling thread, 0.1 ms: call it on the threads of the
/// I/O runtime, in Tokio's `on_thread_start`.
///
/// It helps on kernels that preempt [lazily](crate::kernel::Preemption::Lazy) and time the end of a slice
/// (`HRTICK`, Linux 7.1 and later): there half of the woken threads get a core at once, and the
/// others wait as before. It needs no privilege. Threads that such a thread spawns have short
/// slices, too; those of a lane that is built later do not, if they have nice values. It has no
/// effect on other kernels. The figures are in `twolane::guide::kernels`.
///
/// # Errors
///
/// Of the kind `Unsupported` on other platforms than Linux, and for a thread whose nice value is
/// not 0: that would be lost. Another one if a sandbox refuses it. The thread is as before then.
///
/// # Examples
///
/// ```
/// let io = tokio::runtime::Builder::new_multi_thread()
///     .enable_all()
///     .on_thread_start(|| {
///         // An error: it goes on without.
///         let _ = twolane::kernel::take_short_slices();
///     })
///     .build()
///     .unwrap();
/// ```
pub fn take_short_slices() -> io::Result<()> {
    match SUPPORTED && platform::nice() == 0 {
        true => platform::set_slice(Duration::from_micros(100)),
        false => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Gives this thread the niceness. Never lowers its nice value.
pub(crate) fn apply(niceness: ThreadNiceness) -> io::Result<()> {
    // Before the nice value, which either call also sets to 0, or tries to.
    let class = match niceness.class {
        Class::Normal => Ok(()),
        // Where it is refused, the nice value has to do.
        Class::Slice(slice) => Ok(platform::set_slice(slice).unwrap_or(())),
        Class::Idle => platform::join_idle_class(),
    };
    if platform::nice() < niceness.nice {
        platform::set_nice(niceness.nice)?;
    }
    class
}
