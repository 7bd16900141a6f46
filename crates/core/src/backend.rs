//! [`Backend`]: what runs a CPU lane's jobs.

/// What runs the CPU lane's jobs: a rayon pool or a Tokio runtime.
///
/// The contract is the same on both, except for these differences; the
/// guide (`twolane::guide::backends`) says when to choose which.
///
/// | inside a job | `Rayon` | `Runtime` |
/// |---|---|---|
/// | `par_iter`, `join`, `scope` | on the lane's own threads | on rayon's global pool |
/// | `tokio::spawn`, also that of a client's `Drop` | **on the I/O lane**: use [`spawn`](crate::Handle::spawn) for what computes | the same; inside [`in_cpu_context`](crate::in_cpu_context) on the CPU lane |
/// | a socket opened directly, a Tokio timer, `spawn_blocking` | the I/O lane's | the same; inside `in_cpu_context` a socket panics, and the others are the CPU runtime's |
/// | `Runtime::block_on`, `Handle::block_on` inside a closure | works, and keeps the thread | **panics**: *"Cannot start a runtime from within a runtime"*; `block_in_place` around it works |
/// | `block_in_place` | runs the closure, and keeps the thread | inside `in_cpu_context` Tokio adds a thread for the other jobs, for up to four at once; elsewhere that takes a thread of the I/O runtime on the way, and a warning says so |
/// | `tokio::task::yield_now` | yields to the queued jobs | yields until the thread has nothing else to do, or for eight steps: use [`yield_now`](crate::yield_now) |
/// | `tokio::task::id()` | none | that of the Tokio task that runs this step |
/// | [`Handle::install`](crate::Handle::install) | runs in the pool | panics, with the remedy |
///
/// # Examples
///
/// ```
/// # let io = tokio::runtime::Runtime::new().unwrap();
/// # let _io = io.enter();
/// let cpu = twolane::CpuRuntime::builder().backend(twolane::Backend::Runtime).build().unwrap();
/// assert!(cpu.handle().tokio_handle().is_some());
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
    /// such as Ballista: wrap these futures in
    /// [`in_cpu_context`](crate::in_cpu_context).
    Runtime,
}
