//! [`Priority`]: selects which set of threads of a CPU lane runs a job.

/// How urgent a job is, compared with the other jobs of its CPU lane.
///
/// Tokio and rayon run a job until it yields; the kernel can interrupt it. So each
/// priority has **threads of its own**, as many as the lane was built with. The
/// operating system shares the cores among them by nice value: the I/O lane comes
/// first, then `High`, `Normal`, `Low`. A late `High` job passes any queue of `Normal`
/// and `Low` jobs. On a Linux kernel that preempts it takes a core from a job that
/// runs, as a rule almost at once (`twolane::guide::linux`).
///
/// No priority starves, because nice values share the cores and forbid nothing. The
/// default nice values of `Normal` and `Low` are close: `Normal` gets only twice the
/// CPU time of `Low`. It gets this share at once, but takes a core in the middle of a
/// slice only sometimes. [`Niceness::idle_class_for_low`](crate::Niceness::idle_class_for_low)
/// gives `Low` what the others leave.
///
/// The threads of `Normal` start with the lane, those of another priority with its first job:
/// [`Builder::worker_threads`](crate::Builder::worker_threads) each. `High` is also in use once a
/// [short job](crate::Builder::short_jobs_first) had to pass long ones. A thread without jobs sleeps,
/// and costs the memory of its stack's first pages.
///
/// A job that spawns without a handle ([`spawn_cpu`](crate::spawn_cpu)), or with
/// [`Handle::current`](crate::Handle::current), keeps its own priority. Any other
/// [`Handle`](crate::Handle) has the priority that
/// [`with_priority`](crate::Handle::with_priority) gave it, also inside a job. So if an
/// urgent job spawns with a plain handle of the application's state, and awaits that
/// task, it waits in `Normal`'s queue.
///
/// [`Builder::niceness`](crate::Builder::niceness) sets the nice values. Where threads have no
/// nice values of their own (macOS), each priority still has its own threads. The system then
/// shares the cores evenly among all of them. On Windows `High` goes before the other two, which
/// share evenly.
///
/// Of two priorities the more urgent one is the greater: `High > Normal > Low`.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use twolane::Priority;
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let urgent = cpu.handle().with_priority(Priority::High);
/// let priority = urgent.spawn_cpu(|| twolane::Handle::current().priority()).await.unwrap();
/// assert_eq!(priority, Priority::High);
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Priority {
    /// For jobs that a user waits for, while they take less than half of the cores, all together. They
    /// wait for each other: a request of 5 ms belongs here if it would else wait for jobs of 50 ms.
    High = 2,
    /// The default.
    #[default]
    Normal = 1,
    /// For what can wait: compactions, re-indexing.
    ///
    /// It makes progress even while the others never pause. With the default nice
    /// values, it gets about a fifteenth of a core that `High`, `Normal` and `Low` all
    /// want.
    Low = 0,
}

impl Priority {
    pub(crate) const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// Its index in [`ALL`](Self::ALL).
    pub(crate) const fn index(self) -> usize {
        Self::High as usize - self as usize
    }
}
