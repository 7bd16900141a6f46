//! [`JoinError`]: why a job has no output.

use std::any::Any;
use std::error::Error;
use std::fmt;

use crate::panics::PanicPayload;

/// Why a [`Task`](crate::Task) has no output.
///
/// The vocabulary is that of [`tokio::task::JoinError`]; one cannot be built
/// outside Tokio, hence a type of our own. Exactly one of
/// [`is_panic`](Self::is_panic), [`is_cancelled`](Self::is_cancelled),
/// [`is_expired`](Self::is_expired), [`is_queue_full`](Self::is_queue_full),
/// [`is_shutdown`](Self::is_shutdown),
/// [`is_io_runtime_gone`](Self::is_io_runtime_gone) and
/// [`is_out_of_threads`](Self::is_out_of_threads) is true.
///
/// A service answers 503 to `is_queue_full`, `is_expired` and `is_shutdown`, and
/// 500 to the others, which are a bug (`is_panic`, `is_cancelled`: whoever cancels
/// does not await) or an operator's to mend. A closure that ran and has asked
/// [`checkpoint`](crate::JobContext::checkpoint) ends with what *you* return for
/// [`Cancelled`](crate::Cancelled): if somebody is there to read that, 503 as well.
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let err = cpu.spawn_cpu(|| panic!("no such row")).await.unwrap_err();
/// assert!(err.is_panic());
/// assert_eq!(err.to_string(), "the job panicked: no such row");
/// # }
/// ```
pub struct JoinError(Kind);

enum Kind {
    /// Boxed: each job has room for an error, and few panic.
    Panicked(Box<PanicPayload>),
    Closed(CloseReason),
}

/// Why a job was closed without an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    Cancelled,
    ShutDown,
    IoRuntimeGone,
    NoThreads,
    QueueFull,
    Expired,
}

impl CloseReason {
    /// In the order of their numbers.
    pub(crate) const ALL: [Self; 6] = [
        Self::Cancelled,
        Self::ShutDown,
        Self::IoRuntimeGone,
        Self::NoThreads,
        Self::QueueFull,
        Self::Expired,
    ];

    /// By the program itself: a cancel, a deadline.
    pub(crate) fn is_requested(self) -> bool {
        matches!(self, Self::Cancelled | Self::Expired)
    }

    fn text(self) -> &'static str {
        match self {
            Self::Cancelled => "the job was cancelled",
            Self::ShutDown => "the CPU lane was shut down before the job ended",
            Self::IoRuntimeGone => {
                "the I/O runtime that this CpuRuntime was built on is gone: \
                 build a CpuRuntime on the runtime that is there now \
                 (in tests: one per #[tokio::test], not one for the process)"
            }
            Self::NoThreads => {
                "the operating system gave no threads for the job's priority: raise its limit \
                 (`ulimit -u`, a cgroup's `pids.max`), or build the CpuRuntime with fewer"
            }
            Self::QueueFull => {
                "the CPU lane is full: as many jobs as its Builder::queue_limit have not ended; \
                 shed the load (HTTP 503), or wait for a permit with Handle::admit"
            }
            Self::Expired => "the job's deadline passed before its end",
        }
    }
}

impl From<CloseReason> for JoinError {
    fn from(cause: CloseReason) -> Self {
        Self(Kind::Closed(cause))
    }
}

impl JoinError {
    pub(crate) fn panicked(payload: PanicPayload) -> Self {
        Self(Kind::Panicked(Box::new(payload)))
    }

    fn is(&self, cause: CloseReason) -> bool {
        matches!(self.0, Kind::Closed(closed) if closed == cause)
    }

    /// Nobody will read this error: a panic in it goes to the log.
    pub(crate) fn report_unread(&self) {
        if let Kind::Panicked(payload) = &self.0 {
            crate::panics::report("a job that nobody awaits", &payload.text());
        }
    }

    /// The job panicked.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let err = cpu.spawn_cpu(|| panic!("boom")).wait().unwrap_err();
    /// assert!(err.is_panic() && !err.is_cancelled());
    /// ```
    pub fn is_panic(&self) -> bool {
        matches!(self.0, Kind::Panicked(_))
    }

    /// The job was cancelled: by [`Task::cancel`](crate::Task::cancel) or an
    /// [`AbortHandle`](crate::AbortHandle).
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.spawn(std::future::pending::<()>());
    /// task.cancel();
    /// assert!(task.wait().unwrap_err().is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.is(CloseReason::Cancelled)
    }

    /// The CPU lane was shut down before the job ended; it may never have
    /// started.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// cpu.shutdown().wait();
    /// assert!(cpu.spawn_cpu(|| 1).wait().unwrap_err().is_shutdown());
    /// ```
    pub fn is_shutdown(&self) -> bool {
        self.is(CloseReason::ShutDown)
    }

    /// The I/O runtime that the [`CpuRuntime`](crate::CpuRuntime) was built on
    /// is gone. Build a new `CpuRuntime` on the runtime that is there now; in
    /// a test suite, one per `#[tokio::test]`.
    ///
    /// ```
    /// let io = tokio::runtime::Runtime::new().unwrap();
    /// let cpu = twolane::CpuRuntime::builder().io_handle(io.handle().clone()).build().unwrap();
    /// drop(io);
    /// assert!(cpu.spawn_io(async {}).wait().unwrap_err().is_io_runtime_gone());
    /// ```
    pub fn is_io_runtime_gone(&self) -> bool {
        self.is(CloseReason::IoRuntimeGone)
    }

    /// The threads of the job's [`Priority`](crate::Priority) start with its
    /// first job, and the operating system had none to give. The next job asks
    /// again. (A lane that can't even start the threads of
    /// [`Priority::Normal`](crate::Priority::Normal) is not built at all:
    /// [`BuildError::Spawn`](crate::BuildError::Spawn).)
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let low = cpu.handle().with_priority(twolane::Priority::Low);
    /// match low.spawn_cpu(|| 1).wait() {
    ///     Err(error) if error.is_out_of_threads() => eprintln!("{error}"),
    ///     result => assert_eq!(result.unwrap(), 1),
    /// }
    /// ```
    pub fn is_out_of_threads(&self) -> bool {
        self.is(CloseReason::NoThreads)
    }

    /// The job was not taken on: as many as its priority's
    /// [`queue_limit`](crate::Builder::queue_limit) have been, and have not ended.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// use twolane::{CpuRuntime, Priority};
    /// let cpu = CpuRuntime::builder().queue_limit(Priority::Normal, 1).build().unwrap();
    /// let permit = cpu.handle().try_admit().unwrap();
    /// assert!(cpu.spawn_cpu(|| 1).wait().unwrap_err().is_queue_full());
    /// drop(permit);
    /// assert_eq!(cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
    /// ```
    pub fn is_queue_full(&self) -> bool {
        self.is(CloseReason::QueueFull)
    }

    /// The job's deadline ([`Permit::with_deadline`](crate::Permit::with_deadline))
    /// came before its start or, of a future, before a later poll of it. (A closure
    /// that has started gives its output, late or not.)
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let permit = cpu.handle().try_admit().unwrap();
    /// let late = permit.with_deadline(std::time::Instant::now()).spawn_cpu(|| 1);
    /// assert!(late.wait().unwrap_err().is_expired());
    /// ```
    pub fn is_expired(&self) -> bool {
        self.is(CloseReason::Expired)
    }

    /// The payload of the job's panic, whole, for
    /// [`std::panic::resume_unwind`].
    ///
    /// # Panics
    /// If the job did not panic; see [`try_into_panic`](Self::try_into_panic).
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let err = cpu.spawn_cpu(|| std::panic::panic_any(7_u32)).wait().unwrap_err();
    /// assert_eq!(*err.into_panic().downcast::<u32>().unwrap(), 7);
    /// ```
    #[track_caller]
    pub fn into_panic(self) -> Box<dyn Any + Send + 'static> {
        match self.try_into_panic() {
            Ok(payload) => payload,
            Err(other) => panic!(
                "`JoinError::into_panic` called on an error that is not a panic: {other}; \
                 ask `is_panic` first or call `try_into_panic`"
            ),
        }
    }

    /// The payload of the job's panic, or the error itself.
    ///
    /// # Errors
    /// The same error, if the job did not panic.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// cpu.shutdown().wait();
    /// let err = cpu.spawn_cpu(|| ()).wait().unwrap_err();
    /// assert!(err.try_into_panic().unwrap_err().is_shutdown());
    /// ```
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, JoinError> {
        match self.0 {
            Kind::Panicked(payload) => Ok(payload.into_inner()),
            closed => Err(Self(closed)),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Panicked(payload) => write!(f, "the job panicked: {}", payload.text()),
            Kind::Closed(cause) => f.write_str(cause.text()),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Panicked(payload) => write!(f, "JoinError::Panic({:?})", payload.text()),
            Kind::Closed(cause) => write!(f, "JoinError::{cause:?}"),
        }
    }
}

impl Error for JoinError {}
