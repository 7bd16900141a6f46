//! [`CloseReason`]: why the lane ends a job that has no output.

/// Why a job was closed without an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    Cancelled,
    ShutDown,
    /// Of a submission alone: a job that is there then was shut down.
    Dropped,
    /// Also of the jobs that were there then.
    IoRuntimeGone,
    Expired,
    NoThreads,
    /// Of what was for the I/O lane alone.
    NoIoLane,
}

impl CloseReason {
    /// In the order of their discriminants.
    pub(crate) const ALL: [Self; 7] = [
        Self::Cancelled,
        Self::ShutDown,
        Self::Dropped,
        Self::IoRuntimeGone,
        Self::Expired,
        Self::NoThreads,
        Self::NoIoLane,
    ];

    /// Whether the program itself asked for the end: by a cancel or a deadline.
    pub(crate) fn is_requested(self) -> bool {
        matches!(self, Self::Cancelled | Self::Expired)
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Cancelled => "the job was cancelled",
            Self::ShutDown => {
                "the CPU lane was shut down, or its CpuRuntime dropped, before the job ended"
            }
            Self::Dropped => {
                "the CpuRuntime was dropped before the job came: keep it in `main`, until the last \
                 job has ended"
            }
            Self::IoRuntimeGone => {
                "the I/O runtime that this CpuRuntime was built on is gone: \
                 build a CpuRuntime on the runtime that is there now \
                 (in tests: one per #[tokio::test], not one for the process)"
            }
            Self::Expired => "the job's deadline passed before its end",
            Self::NoIoLane => {
                "this CpuRuntime has no I/O lane, since it was built with Builder::without_io: do the \
                 I/O in async code of your own, or build one on a Tokio runtime (Builder::io_handle)"
            }
            Self::NoThreads => {
                "the operating system gave the CPU lane no threads for this priority: give lanes fewer \
                 (Builder::worker_threads), or the process more"
            }
        }
    }
}
