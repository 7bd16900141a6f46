//! [`Priority`]: which of a CPU lane's sets of threads a job runs on.

/// How urgent a job is beside the other jobs of its CPU lane.
///
/// Tokio and rayon run a job until it yields; the kernel does not. So each
/// priority has **threads of its own**, as many as the lane was built with,
/// and the operating system shares the cores among them by weight: the I/O
/// lane first, then `High`, `Normal`, `Low`. A late `High` job passes any queue
/// of others and takes a core from one that runs, as a rule within some tens of
/// microseconds. Nothing starves, since weights share and do not forbid; that
/// is also why `Normal`, which weighs only twice what `Low` does, gets its
/// share beside `Low` at once, but a core in the middle of a slice only
/// sometimes.
///
/// `Normal`'s threads start with the lane, the others' with the first job that
/// is submitted there. That one waits for them, milliseconds if all cores
/// compute just then. Give `High` an empty job when
/// the program starts, and its first real one is as quick as any.
///
/// A job that spawns without a handle ([`spawn_cpu`](crate::spawn_cpu)), or
/// with [`Handle::current`](crate::Handle::current), keeps its own priority.
/// Any other [`Handle`](crate::Handle) has the one that it was given by
/// [`with_priority`](crate::Handle::with_priority), also inside a job: an
/// urgent one that spawns with a plain handle of your application's state, and
/// awaits that, waits in `Normal`'s queue.
///
/// The weights are at [`Builder::nice`](crate::Builder::nice). Where the
/// platform has no weights for threads (all but Linux), the priorities are
/// still sets of threads of their own, among which the system shares evenly.
///
/// ```
/// # #[tokio::main] async fn main() {
/// use twolane::Priority;
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let urgent = cpu.handle().with_priority(Priority::High);
/// assert_eq!(urgent.spawn_cpu(|| twolane::Handle::current().priority()).await.unwrap(), Priority::High);
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Priority {
    /// For what somebody waits for and is soon done.
    High,
    /// The default.
    #[default]
    Normal,
    /// For what can wait: compactions, re-indexing. It progresses even while
    /// the others never pause, by its weight: on a core that `High`, `Normal`
    /// and `Low` all want, a fifteenth of the time.
    Low,
}

impl Priority {
    pub(crate) const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// Its place in [`ALL`](Self::ALL).
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}
