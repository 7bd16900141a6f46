//! [`Backend`]: what runs a CPU lane's jobs.

/// What runs the CPU lane's jobs: a rayon pool or a Tokio runtime.
///
/// The contract is the same on both, except for these differences; the
/// [guide](crate::guide::backends) says when to choose which.
///
/// | | `Rayon` | `Runtime` |
/// |---|---|---|
/// | `par_iter`, `join`, `scope` inside a job | on the lane's own threads | on rayon's global pool |
/// | `tokio::spawn` inside a job | **on the I/O lane**: use [`spawn`](crate::Handle::spawn) for what computes | on the CPU lane |
/// | a socket opened directly inside a job | belongs to the I/O lane | panics (see below) |
/// | a Tokio timer inside a job | the I/O lane's | the CPU runtime's own |
/// | `Runtime::block_on`, `Handle::block_on` inside a closure | works, and keeps the thread | **panics**: *"Cannot start a runtime from within a runtime"*; `block_in_place` around it works |
/// | Tokio's cooperative budget | none: a future that is always ready does not yield by itself, and does not notice its cancel | as in any Tokio task; none for closures |
/// | the order of jobs | the order of submission; a future that yields goes behind those that have not run | Tokio's; if one step submits more than eight jobs, the last may stay with its worker until the step is over |
/// | a future that was woken counts in [`Metrics`](crate::Metrics) as | queued | suspended, until it is polled: Tokio queues it |
/// | at a shutdown while every thread is stuck, what queued and suspended jobs have captured | is dropped at once | is dropped when a thread is free (of an awaited closure: at once); only then does the log report detached jobs, and `is_finished` of a task that is not awaited return true |
/// | `tokio::task::id()` inside a job | none | its own |
/// | [`Handle::install`](crate::Handle::install) | runs in the pool | panics, with the remedy |
///
/// The panic of a socket in a job on `Backend::Runtime` reads *"A Tokio 1.x context was
/// found, but IO is disabled"*. It means: this future does I/O on a runtime without an
/// I/O driver. Give the future to [`spawn_io`](crate::Handle::spawn_io), or make and
/// poll it inside [`in_io_context`](crate::Handle::in_io_context).
///
/// # Examples
///
/// ```
/// # let io = tokio::runtime::Runtime::new().unwrap();
/// # let _io = io.enter();
/// let cpu = twolane::CpuRuntime::builder().backend(twolane::Backend::Runtime).build().unwrap();
/// assert_eq!(cpu.handle().backend(), twolane::Backend::Runtime);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// A rayon pool of the lane's own. The default.
    #[default]
    Rayon,
    /// A dedicated Tokio runtime with timers and without an I/O driver.
    ///
    /// For engines whose futures call `tokio::spawn` on CPU-heavy parts of themselves,
    /// such as DataFusion.
    Runtime,
}
