//! [`JoinErrorKind`]: what a `match` on a [`JoinError`](crate::JoinError) compares.

use super::CloseReason;

/// Why a job has no output: [`JoinError::kind`](crate::JoinError::kind).
///
/// # Examples
///
/// ```
/// use twolane::JoinErrorKind;
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// cpu.shutdown().await;
/// let status = match cpu.spawn_cpu(|| 42).await {
///     Ok(_) => 200,
///     Err(error) => match error.kind() {
///         JoinErrorKind::QueueFull | JoinErrorKind::Expired | JoinErrorKind::Shutdown => 503,
///         _ => 500,
///     },
/// };
/// assert_eq!(status, 503);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JoinErrorKind {
    /// The job panicked.
    Panic,
    /// The job was aborted.
    Cancelled,
    /// The CPU lane was shut down before the job ended. The job may never have started.
    Shutdown,
    /// The I/O runtime of the [`CpuRuntime`](crate::CpuRuntime) is gone. Build a new one on a
    /// runtime that runs; in a test suite, one for each `#[tokio::test]`.
    IoRuntimeGone,
    /// What was to run on the I/O lane of a [`CpuRuntime`](crate::CpuRuntime) that has none
    /// ([`Builder::without_io`](crate::Builder::without_io)).
    NoIoLane,
    /// The operating system gave no threads when the first job of a [`Priority`](crate::Priority) came.
    /// The next one asks again. Or it gave none for the lane's own Tokio runtime
    /// ([`tokio_handle`](crate::Handle::tokio_handle)): if it had some of them, a
    /// [`shutdown`](crate::CpuRuntime::shutdown) may wait for these for ever: give it a limit. (Without threads for `Priority::Normal` there is no lane: that is a
    /// [`BuildError`](crate::BuildError).)
    NoThreads,
    /// The queue was full: as many jobs as the priority's
    /// [`queue_limit`](crate::Builder::queue_limit) were accepted and have not ended. Or the job
    /// would have waited for longer than its [`max_wait`](crate::Builder::max_wait).
    QueueFull,
    /// The job's [key](crate::Handle::with_key) has as many jobs that have not ended as
    /// [`Key::with_max_jobs`](crate::Key::with_max_jobs) allows. A service answers 429.
    KeyFull,
    /// The job's [deadline](crate::Handle::with_deadline) passed before its start, a later poll of
    /// a future, or a [`checkpoint`](crate::JobContext::checkpoint) of a closure. (A closure
    /// without a checkpoint that has started returns its output, late or not.) Or the time of
    /// [`Task::within`](crate::Task::within) was over, or the reader of a stream took nothing for
    /// its `reader_timeout`.
    Expired,
}

impl From<CloseReason> for JoinErrorKind {
    fn from(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Cancelled => Self::Cancelled,
            CloseReason::ShutDown | CloseReason::Dropped => Self::Shutdown,
            CloseReason::IoRuntimeGone => Self::IoRuntimeGone,
            CloseReason::Expired => Self::Expired,
            CloseReason::NoThreads => Self::NoThreads,
            CloseReason::NoIoLane => Self::NoIoLane,
        }
    }
}
