//! The settings of the threads' nice values.

use std::time::Duration;

use super::Builder;
use crate::build_error::BuildError;
use crate::os::nice::{self, Class, Niceness};
use crate::priority::Priority;

/// By priority: High, Normal, Low.
pub(super) const DEFAULT_NICE: [u8; Priority::ALL.len()] = [8, 16, 19];

/// By priority. Longer than the kernel's default, which is 3 ms at most, and longer from one to
/// the next, so that the more urgent thread gets the core. No longer than that takes: threads of
/// one priority wait this long for one another.
const SLICES_MS: [u64; Priority::ALL.len()] = [4, 6, 10];

impl Builder {
    /// Sets by how much the threads of a priority raise their nice value: 0 to 19.
    ///
    /// Default: 8 for [`High`](Priority::High), 16 for [`Normal`](Priority::Normal), 19
    /// for [`Low`](Priority::Low). It needs no privilege. Platforms other than Linux have
    /// no nice values for threads; there this setting has no effect.
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
    /// in half. The measurements are in the
    /// guide (`twolane::guide::late_job`).
    ///
    /// # Slices
    ///
    /// The exceptions are threads that often sleep and wake up: since Linux 6.6 such a thread
    /// keeps the core for a slice each time, whatever its nice value. So the lane asks for
    /// slices that are longer than the kernel's default (3 ms at most): 4 ms for High, 6 ms for
    /// Normal, 10 ms for Low. From Linux 6.12 on, a thread with a shorter slice gets the core
    /// when it wakes up. (Where an administrator has raised the kernel's slice to these values,
    /// that ends.) These keep the kernel's slice: a priority that is raised by 0, or to a
    /// value below 0, and all of a process that was started at a value above 0 and has no
    /// privilege.
    ///
    /// # Effect on other processes
    ///
    /// Nice values count among the threads of one cgroup (and, with the kernel's autogroup,
    /// of one session). A container or a systemd service is a cgroup of its own: its
    /// neighbours on the host neither gain nor lose. But another process in the *same*
    /// cgroup that computes at nice 0 gets the cores before the CPU lane, 36 to 1. If the
    /// lane has to compete there, raise its values less, or use
    /// [`without_nice`](Self::without_nice).
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
    /// [`without_nice`](Self::without_nice) sets all three to 0, and later calls start
    /// from there.
    ///
    /// # Side effects
    ///
    /// - **Threads that a job starts inherit its value** and its slice, and cannot lower the
    ///   value again. On the rayon backend this includes threads of the I/O runtime's blocking
    ///   pool, if `tokio::task::spawn_blocking` (or a DNS lookup of Tokio) starts them directly
    ///   in a job. Such threads stay, and serve the I/O lane too, until they have been idle for
    ///   10 s; with steady traffic they never end. Call `spawn_blocking` through
    ///   [`spawn_io`](crate::Handle::spawn_io) instead: then an I/O thread starts them.
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
    /// use twolane::{CpuRuntime, Priority};
    /// let settings = CpuRuntime::builder().nice(Priority::High, 5).nice(Priority::Normal, 10);
    /// ```
    pub fn nice(mut self, priority: Priority, raise_by: u8) -> Self {
        self.nice[priority.index()] = raise_by;
        self
    }

    /// Leaves the nice value of all threads as it is.
    ///
    /// The CPU lane then competes with the I/O lane, and its priorities with one another,
    /// as equals.
    ///
    /// # Examples
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().without_nice();
    /// ```
    pub fn without_nice(mut self) -> Self {
        self.nice = Default::default();
        self
    }

    /// Sets whether the threads of [`Low`](Priority::Low) run in the kernel's idle class.
    ///
    /// Default: no. The class is `SCHED_IDLE`, with nice 19 whatever else is set. It needs
    /// no privilege. On platforms other than Linux this setting has no effect.
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
    ///
    /// # Examples
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().idle_class_for_low(true);
    /// ```
    pub fn idle_class_for_low(mut self, idle: bool) -> Self {
        self.idle_class_for_low = idle;
        self
    }

    /// By priority, for threads that start with `base_nice`.
    pub(super) fn niceness(&self, base_nice: i32) -> [Niceness; Priority::ALL.len()] {
        Priority::ALL.map(|priority| {
            let slice = Duration::from_millis(SLICES_MS[priority.index()]);
            match self.nice[priority.index()] {
                _ if priority == Priority::Low && self.idle_class_for_low => Niceness::IDLE,
                // To ask for a slice sets the nice value to 0 first, and it only goes up again.
                by if by == 0 || base_nice + i32::from(by) < 0 => {
                    Niceness::raised_by(base_nice, by, Class::Normal)
                }
                by => Niceness::raised_by(base_nice, by, Class::Slice(slice)),
            }
        })
    }

    pub(super) fn check_nice(&self) -> Result<(), BuildError> {
        let max = nice::MAX_NICE;
        for (priority, asked) in Priority::ALL.into_iter().zip(self.nice) {
            if asked > max {
                return Err(BuildError::new(format!(
                    "Builder::nice({priority:?}, {asked}): a nice value can be raised by 0 to {max}"
                )));
            }
        }
        for pair in Priority::ALL.windows(2) {
            let [urgent, patient] = [pair[0], pair[1]];
            let [of_urgent, of_patient] = [urgent, patient].map(|one| self.nice[one.index()]);
            if of_urgent > of_patient {
                return Err(BuildError::new(format!(
                    "Builder::nice({urgent:?}, {of_urgent}) would yield to {patient:?} at \
                     {of_patient}: give the more urgent priority a value that is not above the \
                     other's"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks_for_a_slice(settings: Builder, base_nice: i32) -> [bool; 3] {
        let all = settings.niceness(base_nice);
        all.map(|niceness| matches!(niceness.class, Class::Slice(_)))
    }

    /// It would set the nice value to 0.
    #[test]
    fn a_thread_that_stays_below_0_asks_for_no_slice() {
        assert_eq!(asks_for_a_slice(Builder::new(), 0), [true; 3]);
        assert_eq!(asks_for_a_slice(Builder::new(), -10), [false, true, true]);
        assert_eq!(asks_for_a_slice(Builder::new(), -20), [false; 3]);
        let plain = Builder::new().nice(Priority::High, 0);
        assert_eq!(asks_for_a_slice(plain, 0), [false, true, true]);
    }
}
