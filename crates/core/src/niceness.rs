//! [`Niceness`]: the weight of the threads of each priority.

use std::time::Duration;

use giveway::Weight;

use crate::build_error::BuildError;
use crate::priority::Priority;

const MAX: u8 = Weight::MAX;

/// For so long the kernel may leave the core to a thread of the lane though a more urgent one waits
/// that was not due when it woke up. With shorter ones threads of the lane take turns more often,
/// and the ticks (`giveway`) need a shorter one themselves.
const SLICE: Duration = Duration::from_millis(1);

/// By how much the threads of each priority raise their nice value, for
/// [`Builder::niceness`](crate::Builder::niceness).
///
/// The default is 8 for [`High`](Priority::High), 16 for [`Normal`](Priority::Normal), 19 for
/// [`Low`](Priority::Low). It needs no privilege. On Windows the threads of High get the priority
/// below normal, the others the lowest ([`giveway::Weight`]): while other threads want all
/// cores, the lane gets next to none. On macOS and elsewhere it has no effect.
///
/// On Linux the nice value decides how threads share a core that several of them
/// want. One step is a factor of 1.25. By default the I/O lane gets six times the time
/// that High gets, High six times what Normal gets, and Normal twice what Low gets.
/// Each gets its share, so no thread starves. A thread whose core no other thread
/// wants has all of it, so the throughput of the CPU lane stays the same.
///
/// # Why these values
///
/// A thread that wakes up gets the core at once if the running thread's nice value is
/// much higher. Otherwise it waits for the end of a slice (milliseconds). From a
/// distance of 8 on, that wait is the exception. So the distance from 0 to 16 is cut
/// in half. The measurements are in
/// `docs/contributors/kernels.md` of the repository.
///
/// # Slices
///
/// Since Linux 6.6 a thread that wakes up may be short of its due by microseconds, and the
/// running thread then keeps the core for its slice, whatever the nice values. From Linux 6.12
/// on, the lane asks for slices of 1 ms, and the process has the kernel look in between
/// ([`giveway::tick_each`]). These keep the kernel's slice, 3 ms at most: a priority that is
/// raised by 0, or to a value below 0, and all of a process that was started at a value
/// above 0 and has no privilege.
///
/// # Effect on other processes
///
/// Nice values count among the threads of one cgroup (and, with the kernel's autogroup,
/// of one session). A container or a systemd service is a cgroup of its own: its
/// neighbours on the host neither gain nor lose. But another process in the *same*
/// cgroup that computes at nice 0 gets the cores before the CPU lane, 36 to 1. If the
/// lane has to compete there, raise its values less, or use
/// [`Niceness::off`].
///
/// # Limits
///
/// The base is the nice value of the thread that made the first lane of the process.
/// The sum is 19 at most. So in a process that was started at 11 or more, all
/// priorities share the cores evenly. A sandbox may refuse to raise the value. Then
/// jobs run without it, the lane logs a warning once, and `Debug` of the handle shows
/// the refusal.
///
/// Normal and Low must not have a lower value than a more urgent priority, defaults
/// included. To raise High above 16, raise Normal (and Low) as well.
/// [`Niceness::off`] sets all three to 0, and later calls start
/// from there.
///
/// # Side effects
///
/// - **Threads that a job starts inherit its value** and its slice, and cannot lower the
///   value again. This includes threads of the I/O runtime's blocking
///   pool, if `tokio::task::spawn_blocking` (or a DNS lookup of Tokio) starts them directly
///   in a job. Such threads stay, and serve the I/O lane too, until they have been idle for
///   10 s; with steady traffic they never end. Call `spawn_blocking` through
///   [`spawn_io`](crate::Handle::spawn_io) instead: then an I/O thread starts them.
/// - **A child process that a job starts keeps the job's value for its life**, and so do the
///   processes that it starts. Start it by Tokio's `process::Command` inside a
///   [`spawn_io`](crate::Handle::spawn_io) instead: then it has the value of an I/O thread.
/// - **A lock that a job holds** stays held while the job waits for a core. Don't let
///   the I/O lane wait for such a lock. twolane itself has some, each held for a few
///   instructions: a limited queue's semaphore; the registry that holds a job whose task has
///   moved from a lane thread to an I/O thread; a semaphore that the pump of a stream waits
///   for from its start to its end. Others are taken when a lane is built or has shut down,
///   when the process's default handle is set, and, where a lane is watched, when a thread
///   does the first and the last thing that the watch sees. Tokio and rayon have such locks
///   too.
///
/// # Examples
///
/// ```
/// use twolane::{CpuRuntime, Niceness, Priority};
/// let niceness = Niceness::default().of(Priority::High, 5).of(Priority::Normal, 10);
/// let settings = CpuRuntime::builder().niceness(niceness);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it has no effect before `Builder::niceness`"]
pub struct Niceness {
    raised_by: [u8; Priority::ALL.len()],
    idle_class_for_low: bool,
}

impl Default for Niceness {
    fn default() -> Self {
        Self {
            raised_by: [8, 16, 19],
            ..Self::off()
        }
    }
}

impl Niceness {
    /// Leaves the nice value of all threads as it is.
    ///
    /// The CPU lane then competes with the I/O lane, and its priorities with one another,
    /// as equals.
    pub const fn off() -> Self {
        Self {
            raised_by: [0; Priority::ALL.len()],
            idle_class_for_low: false,
        }
    }

    /// Sets by how much the threads of a priority raise their nice value: 0 to 19.
    pub fn of(mut self, priority: Priority, raise_by: u8) -> Self {
        self.raised_by[priority.index()] = raise_by;
        self
    }

    /// Sets whether the threads of [`Low`](Priority::Low) run in the kernel's idle class. The
    /// default is false.
    ///
    /// The class is `SCHED_IDLE`, with nice 19 and no other value. It needs no
    /// privilege. On Windows it is the priority idle; on macOS and elsewhere this setting has no
    /// effect.
    ///
    /// The kernel treats a core that runs only such threads as idle, and puts threads that
    /// wake up there. With nice values alone, two High threads that wake up together may
    /// queue for one core, for milliseconds, while another core runs Low's work. The
    /// measurements are in the guide: `twolane::guide::object_store`.
    ///
    /// The price: such a thread gets a tenth of what a thread of Normal gets, and next to
    /// nothing beside the I/O lane or another process at nice 0 (1 to 340). It starves as
    /// long as the others want all cores. A thread that waits for a lock that it holds (the
    /// allocator's, for example) waits as long. Threads that Low's jobs start are of that
    /// class as well. So use it for work that can wait until some cores are idle, in a
    /// process where that happens regularly.
    ///
    /// If a sandbox refuses the class, the lane logs a warning once, and jobs run at
    /// nice 19.
    pub const fn idle_class_for_low(mut self, used: bool) -> Self {
        self.idle_class_for_low = used;
        if used {
            self.raised_by[Priority::Low.index()] = MAX;
        }
        self
    }

    /// Of a thread of that priority.
    pub(crate) fn weight(self, priority: Priority) -> Weight {
        let raised_by = self.raised_by[priority.index()];
        match raised_by {
            _ if self.idle_class_for_low && priority == Priority::Low => Weight::idle_class(),
            0 => Weight::raised_by(0),
            _ => Weight::raised_by(raised_by).with_slice(SLICE),
        }
    }

    pub(crate) fn check(self) -> Result<(), BuildError> {
        let mut least = 0;
        for (priority, by) in Priority::ALL.into_iter().zip(self.raised_by) {
            if self.idle_class_for_low && priority == Priority::Low {
                least = MAX;
            }
            BuildError::unless((least..=MAX).contains(&by), || {
                format!(
                    "Niceness::of({priority:?}, {by}): {least} to {MAX}, so that it yields to \
                     what is more urgent; give it that, or the more urgent priority less"
                )
            })?;
            least = by;
        }
        Ok(())
    }
}
