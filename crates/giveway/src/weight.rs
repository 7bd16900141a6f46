//! [`Weight`]: the nice value of a thread, its slice, and whether it is in the kernel's idle class.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::platform;
use crate::starter::{self, MAY_HAVE_SLICE};

/// The shortest and the longest slice that a thread may ask for.
const SLICES: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(100));

/// How much a thread gives way to others: by its nice value, by the length of its slices, by the
/// kernel's idle class.
///
/// On Linux the nice value decides how threads share a core that several of them want. One step is
/// a factor of 1.25, so a thread at nice 16 gets one 36th of what a thread at 0 gets. A thread
/// whose core no other thread wants has all of it.
///
/// On Windows a weight is one of three priorities, within the class of the process:
///
/// | weight | priority |
/// |---|---|
/// | `raised_by(0)` | as it was |
/// | `raised_by(1)` to `(8)` | `THREAD_PRIORITY_BELOW_NORMAL` |
/// | `raised_by(9)` to `(19)` | `THREAD_PRIORITY_LOWEST` |
/// | `idle_class()` | `THREAD_PRIORITY_IDLE` |
///
/// They are no shares: while others want all cores, a thread of a lower priority gets none but for
/// the short boosts that Windows gives to one that starves. So says its documentation; nothing was
/// measured there. Slices have no effect. A weight has none at all on macOS, where quality of
/// service decides, and elsewhere.
///
/// A nice value decides how much of a core a thread gets, not when. A thread that wakes up gets the
/// core at once if the running thread's nice value is higher by 8 or more, mostly. The exceptions:
/// since Linux 6.6 it may be short of its due by microseconds, and the running thread then keeps
/// the core for a slice, whatever its nice value. Since 6.12 a thread may ask for slices of its own
/// length. So one that is to give way asks for slices of 1 ms, and not the kernel's (3 ms at
/// most), and the process has the kernel look in between ([`tick_each`](crate::tick_each)).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use giveway::Weight;
///
/// const BACKGROUND: Weight = Weight::raised_by(16).with_slice(Duration::from_millis(1));
/// giveway::start().unwrap(); // first in `main`
/// std::thread::spawn(|| {
///     if let Err(refused) = BACKGROUND.apply() {
///         eprintln!("this thread competes with all others: {refused}");
///     }
///     // .. compute
/// })
/// .join()
/// .unwrap();
/// ```
///
/// A pool applies it in its start hook: rayon's `start_handler`, Tokio's `on_thread_start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it has no effect before `apply`"]
pub struct Weight {
    raised_by: u8,
    slice: Option<Duration>,
    is_idle: bool,
}

impl Weight {
    /// The highest nice value.
    pub const MAX: u8 = 19;

    /// Whether a thread can have a weight of its own here.
    pub const SUPPORTED: bool = cfg!(any(target_os = "linux", windows));

    /// Raises the nice value by 0 to 19 above the process's own ([`start`](crate::start)).
    ///
    /// It needs no privilege. The sum is 19 at most.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(giveway::Weight::raised_by(16).nice(5), 19);
    /// ```
    pub const fn raised_by(steps: u8) -> Self {
        Self {
            raised_by: steps,
            slice: None,
            is_idle: false,
        }
    }

    /// Asks for slices of this length, 0.1 to 100 ms. It needs no privilege.
    ///
    /// Where they are not to be had, the thread keeps the kernel's: before Linux 6.12, in a sandbox
    /// that refuses them, for a thread whose nice value is below 0 afterwards, and without a
    /// privilege for one that was niced before.
    ///
    /// *Shorter* slices than the kernel's are for the threads that others give way to. On kernels
    /// that preempt [lazily](crate::tick_each) and time the end of a slice (`HRTICK`, Linux 7.1
    /// and later) half of the woken threads with 0.1 ms get a core at once.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// # giveway::start().unwrap();
    /// // In the `on_thread_start` of the runtime that serves sockets:
    /// let _ = giveway::Weight::raised_by(0).with_slice(Duration::from_micros(100)).apply();
    /// ```
    pub const fn with_slice(mut self, length: Duration) -> Self {
        self.slice = Some(length);
        self
    }

    /// Has the thread run in the kernel's idle class, `SCHED_IDLE`, with nice 19. It needs no
    /// privilege. (On Windows: see [above](Self).)
    ///
    /// The kernel treats a core that runs only such threads as idle, and puts threads there that
    /// wake up. The price: such a thread gets 1 of 340 parts beside a thread at nice 0. It
    /// starves for as long as others want all cores, and a thread that waits for a lock which it
    /// holds (the allocator's, for example) waits as long.
    ///
    /// # Examples
    ///
    /// ```
    /// let sweeper = giveway::Weight::idle_class();
    /// ```
    pub const fn idle_class() -> Self {
        Self {
            is_idle: true,
            ..Self::raised_by(Self::MAX)
        }
    }

    /// The nice value of a thread with this weight, if the process's own is `base`.
    ///
    /// # Examples
    ///
    /// ```
    /// let base = giveway::start().unwrap();
    /// println!("{}", giveway::Weight::raised_by(8).nice(base));
    /// ```
    pub fn nice(self, base: i32) -> i32 {
        (base + i32::from(self.raised_by)).min(Self::MAX.into())
    }

    /// Gives the calling thread this weight. It never lowers a nice value, which takes a privilege.
    ///
    /// Threads that this one spawns inherit the nice value and the slice, but not a priority of
    /// Windows: see [`spawn`](crate::spawn).
    ///
    /// # Errors
    ///
    /// `InvalidInput` for more than 19 steps, and for a slice out of its range. Another one if a
    /// sandbox refuses the nice value or the idle class; the thread may have a part of the weight
    /// then. A slice that is refused is no error. And one if [`start`](crate::start) was not called
    /// before.
    ///
    /// # Examples
    ///
    /// ```
    /// let too_much = giveway::Weight::raised_by(40).apply().unwrap_err();
    /// assert_eq!(too_much.to_string(), "Weight::raised_by(40): 0 to 19 steps");
    /// ```
    pub fn apply(self) -> io::Result<()> {
        let invalid = |text| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        if self.raised_by > Self::MAX {
            return invalid(format!(
                "Weight::raised_by({}): 0 to 19 steps",
                self.raised_by
            ));
        }
        // The kernel would take the next one that it has, in silence.
        let is_odd = |slice: &Duration| !(SLICES.0..=SLICES.1).contains(slice);
        if let Some(slice) = self.slice.filter(is_odd) {
            return invalid(format!("Weight::with_slice({slice:?}): 0.1 to 100 ms"));
        }
        let base = starter::base_nice()?;
        let nice = self.nice(base).max(platform::nice());
        // Either call sets the nice value to 0 as well, or tries to, so the nice value comes after
        // it. One below 0 would be lost.
        let class = match self.slice {
            _ if self.is_idle => platform::join_idle_class(),
            // Where it is refused, the nice value has to do.
            Some(slice) if nice >= 0 => platform::set_slice(slice).or(Ok(())),
            _ => Ok(()),
        };
        let raised = match platform::nice() < nice {
            true => platform::set_nice(nice),
            false => Ok(()),
        };
        // Also if the nice value was refused.
        let may_have_slice = self.slice.is_some() && platform::nice() == base;
        MAY_HAVE_SLICE.fetch_or(may_have_slice, Relaxed);
        raised.and(class)
    }
}
