//! [`Backend`]: which of the two, and in what they differ.

/// What runs the CPU lane's jobs. The contract is the same on both, but for
/// these:
///
/// | | `Rayon` | `Runtime` |
/// |---|---|---|
/// | `par_iter`, `join`, `scope` inside a job | on the lane's own threads | on rayon's global pool |
/// | `tokio::spawn` inside a job | **on the I/O lane**: use [`spawn`](crate::Handle::spawn) for what computes | on the CPU lane |
/// | a socket opened directly inside a job | belongs to the I/O lane | panics (see below) |
/// | a Tokio timer inside a job | the I/O lane's | the CPU runtime's own |
/// | `Runtime::block_on`, `Handle::block_on` inside a closure | works, and keeps the thread | **panics**: *"Cannot start a runtime from within a runtime"*; `block_in_place` around it works |
/// | Tokio's cooperative budget | none: a future that is always ready does not yield by itself, and does not see its cancel | as in any Tokio task; none for closures |
/// | the order of jobs | that of submission; a future that gives way goes behind those that have not run | Tokio's; of more than eight jobs that one step submits, the last may stay with its worker until the step is over |
/// | a future that was woken counts in [`Metrics`](crate::Metrics) as | queued | suspended, until it is polled: Tokio queues it |
/// | at a shutdown while every thread is stuck, what queued and suspended jobs have captured | is dropped at once | is dropped when a thread is free; only then the log hears of detached ones, and `is_finished` of a task that is not awaited says so |
/// | `tokio::task::id()` inside a job | none | its own |
/// | [`Handle::install`](crate::Handle::install) | runs in the pool | panics, with the remedy |
///
/// The panic of a socket in a job on `Backend::Runtime` reads *"A Tokio 1.x
/// context was found, but IO is disabled"*. It means: this future does I/O
/// where none is done. Give it to [`spawn_io`](crate::Handle::spawn_io), or
/// make and poll it inside [`in_io_context`](crate::Handle::in_io_context).
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
    /// A dedicated Tokio runtime with timers and without an I/O driver, for
    /// engines whose futures call `tokio::spawn` on CPU-heavy parts of
    /// themselves (DataFusion).
    Runtime,
}
