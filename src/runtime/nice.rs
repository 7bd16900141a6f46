//! The settings of the threads' weights.

use super::Builder;
use crate::build_error::BuildError;
use crate::os::nice::{self, Niceness};
use crate::priority::Priority;

/// By priority: High, Normal, Low.
pub(super) const DEFAULT_NICE: [u8; Priority::ALL.len()] = [8, 16, 19];

impl Builder {
    /// By how much the threads of a priority raise their nice value, 0 to 19.
    /// Default: 8 for [`High`](Priority::High), 16 for
    /// [`Normal`](Priority::Normal), 19 for [`Low`](Priority::Low). It needs no
    /// privilege. Only on Linux; elsewhere nothing is set.
    ///
    /// On Linux the nice value is a thread's weight beside those that want the
    /// same core: a factor of 1.25 a step. By default the I/O lane weighs six
    /// times as much as High, High six times as much as Normal, and Normal
    /// twice as much as Low. Weights share, so nobody starves; and a core that
    /// nobody else wants is had whole, so the CPU lane's throughput stays what
    /// it was.
    ///
    /// # Why these values
    /// A thread that wakes up gets the core at once if the one that has it is
    /// much lighter; else it waits for a slice, milliseconds. This is the p99.9
    /// of an echo on the I/O lane, once every 2 ms, while both cores compute at
    /// Normal (`cargo bench --bench io_tail -- --nice N`; 2 cores, Linux 6.18):
    ///
    /// | nice | 0 | 5 | 8 | 10 | 16 | 19 | idle machine |
    /// |---|---|---|---|---|---|---|---|
    /// | ms | 3.7 to 5 | 1.1 to 3.3 | 0.11 | 0.1 to 1.6 | 0.08 to 0.13 | 0.08 to 0.13 | 0.09 to 0.17 |
    ///
    /// (One to three short runs each, on a noisy virtual machine.) Below 8 the
    /// wait for a slice is the rule. From 8 on it is the exception: a run now and
    /// then with some requests of 2 ms, as the idle machine has too if it is kept
    /// awake by another process at nice 19. The same holds between High and
    /// Normal: a late High job beside a full queue of Normal ones was done, at
    /// p99 of each of five rounds, 0.06 to 2.5 ms after its call (bench
    /// `late_job`). So the distance from 0 to 16 is cut in half: a lighter High
    /// would leave the I/O lane more, and pass Normal's jobs less surely.
    ///
    /// # Who else is affected
    /// Weights count among the threads of one cgroup (and, with the kernel's
    /// autogroup, of one session). A container or a service of systemd's is a
    /// cgroup of its own: its neighbours on the host neither gain nor lose by
    /// this. But another *process in the same group* that computes at nice 0
    /// gets the cores before the CPU lane does, 36 to 1: give the lane less, or
    /// [`without_nice`](Self::without_nice), if it has to hold its own there.
    ///
    /// The value is raised from that of the thread that made the process's
    /// first lane, to 19 at most: in a process that was itself started at 11 or
    /// more, all priorities weigh the same. A sandbox may refuse to raise it:
    /// then jobs run without, a warning is logged once, and `Debug` of the
    /// handle shows it.
    ///
    /// Neither Normal nor Low may be below the more urgent priorities, defaults
    /// included: to raise High above 16 takes raising the others first.
    /// [`without_nice`](Self::without_nice) sets all three to 0, and later
    /// calls start from there.
    ///
    /// # What it brings with it
    /// - **Threads that a job makes inherit its value**, and can't get rid of
    ///   it. On the rayon backend that includes threads of the I/O runtime's
    ///   blocking pool that `tokio::task::spawn_blocking` (or a DNS lookup of
    ///   Tokio's) makes right in a job: they stay, and serve the I/O lane too,
    ///   until they were idle for 10 s; with steady traffic, for ever. Call it
    ///   through [`spawn_io`](crate::Handle::spawn_io), and they are born where
    ///   they belong.
    /// - **A lock that a job holds** stays held while the job waits for a core.
    ///   Don't let the I/O lane wait for one. twolane's own code does not where
    ///   jobs are submitted, woken and awaited, but for the semaphore of a limited
    ///   queue, whose lock is held for a few instructions. It has such locks
    ///   elsewhere (a lane is built or has shut down, the process's default handle
    ///   is set), and so have Tokio and rayon.
    ///
    /// ```
    /// use twolane::Priority;
    /// let settings = twolane::CpuRuntime::builder().nice(Priority::High, 5).nice(Priority::Normal, 10);
    /// ```
    pub fn nice(mut self, priority: Priority, raise_by: u8) -> Self {
        self.nice[priority.index()] = raise_by;
        self
    }

    /// Leaves the nice value of all threads as it is, so that the CPU lane
    /// competes with the I/O lane, and its priorities with one another, as
    /// equals.
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().without_nice();
    /// ```
    pub fn without_nice(mut self) -> Self {
        self.nice = Default::default();
        self
    }

    /// Whether [`Low`](Priority::Low)'s threads are of the kernel's idle class,
    /// `SCHED_IDLE`, with nice 19 whatever else is set. Default: no. Only on
    /// Linux; elsewhere nothing is set. It needs no privilege.
    ///
    /// A thread that wakes up goes to a core where only such work runs as if
    /// that were idle. By nice values alone, two High threads that wake up
    /// together may queue for one core, for milliseconds, while the other has
    /// Low's work. Beside compactions at Low, flushes at High (with nice 1) had
    /// a p99 of 1.27 times what it is alone with this (1.15 to 1.49), and 1.56
    /// without (1.19 to 1.83); their median went from 1.07 to 1.02. (Six slices
    /// each of the rayon backend, 2 cores, Linux 6.18: bench `flush_compact`,
    /// without and with its switch `--without-idle-class`.)
    ///
    /// The price: such a thread weighs a tenth of what Normal's does, and next
    /// to nothing beside the I/O lane or another process at nice 0 (1 to 340).
    /// It starves as long as they want all cores, and whoever waits for a lock
    /// that it holds, be it the allocator's, waits too. Threads that its jobs
    /// make are of that class as well. So it is for work that can wait for a
    /// quiet second, in a process whose I/O lane has them.
    ///
    /// If it is refused (a sandbox may), a warning says so once, and jobs run
    /// at nice 19. Feature `idle-class`.
    ///
    /// ```
    /// let settings = twolane::CpuRuntime::builder().idle_class_for_low(true);
    /// ```
    #[cfg(feature = "idle-class")]
    pub fn idle_class_for_low(mut self, idle: bool) -> Self {
        self.idle_class_for_low = idle;
        self
    }

    /// By priority, for threads that are born with `base_nice`.
    pub(super) fn niceness(&self, base_nice: i32) -> [Niceness; Priority::ALL.len()] {
        Priority::ALL.map(|priority| match priority {
            #[cfg(feature = "idle-class")]
            Priority::Low if self.idle_class_for_low => Niceness::IDLE,
            _ => Niceness::raised_by(base_nice, self.nice[priority.index()]),
        })
    }

    pub(super) fn check_nice(&self) -> Result<(), BuildError> {
        let of = |priority: Priority| (priority, self.nice[priority.index()]);
        for priority in Priority::ALL {
            if of(priority).1 > nice::MAX_NICE {
                let asked = of(priority).1;
                return Err(BuildError::Nice {
                    priority,
                    asked,
                    max: nice::MAX_NICE,
                });
            }
        }
        for pair in Priority::ALL.windows(2) {
            let (urgent, patient) = (of(pair[0]), of(pair[1]));
            if urgent.1 > patient.1 {
                return Err(BuildError::NiceOrder { urgent, patient });
            }
        }
        Ok(())
    }
}
