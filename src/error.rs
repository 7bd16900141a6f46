//! The errors of the crate.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io;

use crate::panics::PanicPayload;

/// Why a [`Task`](crate::Task) has no output.
///
/// The vocabulary is that of [`tokio::task::JoinError`]; one cannot be built
/// outside Tokio, hence a type of our own. Exactly one of
/// [`is_panic`](Self::is_panic), [`is_cancelled`](Self::is_cancelled),
/// [`is_shutdown`](Self::is_shutdown) and
/// [`is_io_runtime_gone`](Self::is_io_runtime_gone) is true.
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let err = cpu.spawn_cpu(|| panic!("no such row")).await.unwrap_err();
/// assert!(err.is_panic());
/// assert_eq!(err.to_string(), "the job panicked: no such row");
/// # }
/// ```
pub struct JoinError {
    repr: Repr,
}

enum Repr {
    Panic(PanicPayload),
    Cancelled,
    ShutDown,
    IoRuntimeGone,
}

impl JoinError {
    pub(crate) fn panicked(payload: PanicPayload) -> Self {
        Self {
            repr: Repr::Panic(payload),
        }
    }

    pub(crate) fn cancelled() -> Self {
        Self {
            repr: Repr::Cancelled,
        }
    }

    pub(crate) fn shut_down() -> Self {
        Self {
            repr: Repr::ShutDown,
        }
    }

    pub(crate) fn io_runtime_gone() -> Self {
        Self {
            repr: Repr::IoRuntimeGone,
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
        matches!(self.repr, Repr::Panic(_))
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
        matches!(self.repr, Repr::Cancelled)
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
        matches!(self.repr, Repr::ShutDown)
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
        matches!(self.repr, Repr::IoRuntimeGone)
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
        match self.repr {
            Repr::Panic(payload) => Ok(payload.into_inner()),
            repr => Err(Self { repr }),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.repr {
            Repr::Panic(payload) => write!(f, "the job panicked: {}", payload.text()),
            Repr::Cancelled => f.write_str("the job was cancelled"),
            Repr::ShutDown => f.write_str("the CPU lane was shut down before the job ended"),
            Repr::IoRuntimeGone => f.write_str(
                "the I/O runtime that this CpuRuntime was built on is gone: \
                 build a CpuRuntime on the runtime that is there now \
                 (in tests: one per #[tokio::test], not one for the process)",
            ),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.repr {
            Repr::Panic(payload) => write!(f, "JoinError::Panic({:?})", payload.text()),
            Repr::Cancelled => f.write_str("JoinError::Cancelled"),
            Repr::ShutDown => f.write_str("JoinError::ShutDown"),
            Repr::IoRuntimeGone => f.write_str("JoinError::IoRuntimeGone"),
        }
    }
}

impl Error for JoinError {}

/// Why [`Builder::build`](crate::Builder::build) made no runtime.
///
/// ```
/// // No Tokio runtime around, and none named:
/// let err = twolane::CpuRuntime::new().unwrap_err();
/// assert!(err.to_string().contains("Builder::io_handle"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no Tokio runtime here to be the I/O lane, and
    /// [`Builder::io_handle`](crate::Builder::io_handle) named none.
    NoIoRuntime,
    /// The Tokio runtime that was to be the I/O lane has been shut down.
    IoRuntimeGone,
    /// [`Builder::threads`](crate::Builder::threads) was given a number
    /// outside `1..=max`.
    Threads {
        /// What was asked for.
        asked: usize,
        /// The most that one lane can have.
        max: usize,
    },
    /// [`Builder::thread_name`](crate::Builder::thread_name) was given a name
    /// with a NUL byte in it, which no platform accepts.
    ThreadName {
        /// What was asked for.
        asked: String,
    },
    /// The operating system gave no thread.
    Spawn(io::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoIoRuntime => f.write_str(
                "no Tokio runtime here to be the I/O lane: build the CpuRuntime inside one \
                 (#[tokio::main], Runtime::enter) or name one with Builder::io_handle",
            ),
            Self::IoRuntimeGone => f.write_str(
                "the Tokio runtime that was to be the I/O lane has been shut down: \
                 give Builder::io_handle the handle of one that runs",
            ),
            Self::Threads { asked, max } => write!(
                f,
                "Builder::threads({asked}): the CPU lane takes 1 to {max} threads; \
                 leave it out for one per core"
            ),
            Self::ThreadName { asked } => write!(
                f,
                "Builder::thread_name({asked:?}): a thread's name cannot hold a NUL byte"
            ),
            // The cause is the `source`, so it is not repeated here.
            Self::Spawn(_) => f.write_str("the operating system gave the CPU lane no thread"),
        }
    }
}

impl Error for BuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Spawn(cause) => Some(cause),
            _ => None,
        }
    }
}

/// This thread has no current [`Handle`](crate::Handle).
///
/// ```
/// let err = twolane::Handle::try_current().unwrap_err();
/// assert!(err.to_string().contains("Handle::enter"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoCurrentHandle;

impl fmt::Display for NoCurrentHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no current twolane handle on this thread: it runs no job of a CpuRuntime, \
             no handle was entered (Handle::enter) and the process has no default \
             (Handle::set_process_default); call the method on a Handle instead",
        )
    }
}

impl Error for NoCurrentHandle {}

/// The job that asked was cancelled, dropped, or is on a lane that shuts down:
/// its output will not be read. Returned by [`checkpoint`](crate::checkpoint).
///
/// ```
/// fn rows(n: u32) -> Result<u32, twolane::Cancelled> {
///     for _ in 0..n {
///         twolane::checkpoint()?; // Ok everywhere but in a cancelled job
///     }
///     Ok(n)
/// }
/// assert_eq!(rows(3), Ok(3));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the job was cancelled: nobody waits for its output any more")
    }
}

impl Error for Cancelled {}
