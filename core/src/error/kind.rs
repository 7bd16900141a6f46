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
    /// The CPU lane was shut down before the job ended.
    Shutdown,
    /// The I/O runtime of the [`CpuRuntime`](crate::CpuRuntime) is gone.
    IoRuntimeGone,
    /// The queue was full.
    QueueFull,
    /// The job's deadline passed before its end.
    Expired,
}

impl From<CloseReason> for JoinErrorKind {
    fn from(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Cancelled => Self::Cancelled,
            CloseReason::ShutDown => Self::Shutdown,
            CloseReason::IoRuntimeGone => Self::IoRuntimeGone,
            CloseReason::QueueFull => Self::QueueFull,
            CloseReason::Expired => Self::Expired,
        }
    }
}
