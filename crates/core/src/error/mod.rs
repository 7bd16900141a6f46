//! [`JoinError`]: why a job has no output.

mod close_reason;
mod kind;

use std::any::Any;
use std::error::Error;
use std::time::Duration;
use std::{fmt, io};

use crate::panics::PanicPayload;
pub(crate) use close_reason::CloseReason;
pub use kind::JoinErrorKind;

/// The error of a [`Task`](crate::Task) whose job has no output.
///
/// The names are those of [`tokio::task::JoinError`]. That type cannot be built outside
/// of Tokio, so this is a type of its own. [`kind`](Self::kind) returns the reason. There is no
/// `id`, since a job is no Tokio task: to tell which of several jobs failed, keep a key beside its
/// [`Task`](crate::Task).
///
/// A service answers 503 if the error [`is_unavailable`](Self::is_unavailable), and 500 to the
/// rest. Those are bugs (`is_panic`; `is_cancelled`, if a handler awaits a job that other code
/// aborts) or problems that an operator has to solve. The closure of a
/// [`spawn_cpu_with`](crate::Handle::spawn_cpu_with) that a
/// [`checkpoint`](crate::JobContext::checkpoint) has ended gives the same errors.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let err = cpu.spawn_cpu(|| panic!("no such row")).await.unwrap_err();
/// assert!(err.is_panic());
/// assert_eq!(err.to_string(), "the job panicked: no such row");
/// # }
/// ```
pub struct JoinError(Repr);

const _: () = assert!(size_of::<JoinError>() == 16);

enum Repr {
    /// Boxed: each job reserves space for an error, and few jobs panic.
    Panicked(Box<PanicPayload>),
    Closed(CloseReason),
    /// Never taken on: one of the limits.
    Full(Full),
    /// The reader of a stream has taken nothing for so long.
    LateReader(Duration),
}

/// The limit that refuses a job. (Small: each job reserves space for an error.)
#[derive(Clone, Copy, Debug)]
pub(crate) enum Full {
    /// `Builder::queue_limit`.
    Jobs(u32),
    /// `Builder::max_wait`, in microseconds.
    Time(u32),
    /// `Key::with_max_jobs`.
    Key(u16),
    /// The table of keys.
    Keys,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHED: &str = "shed the load (HTTP 503), or wait for a permit with Handle::reserve";
        match self {
            Self::Jobs(most) => write!(
                f,
                "the CPU lane is full: {most} jobs have not ended, its Builder::queue_limit; {SHED}"
            ),
            Self::Time(most) => write!(
                f,
                "the CPU lane is full: the job would wait for longer than {:?}, its \
                 Builder::max_wait; {SHED}",
                Duration::from_micros((*most).into())
            ),
            Self::Key(most) => write!(
                f,
                "{most} jobs of this key have not ended, its Key::with_max_jobs: submit fewer at a \
                 time (HTTP 429), or raise it"
            ),
            Self::Keys => f.write_str(
                "too many keys have jobs on this lane, some ten thousand: shed the load (HTTP 503)",
            ),
        }
    }
}

/// The error of a stream whose reader has taken nothing for so long.
pub fn late_reader(limit: Duration) -> JoinError {
    JoinError(Repr::LateReader(limit))
}

impl From<CloseReason> for JoinError {
    fn from(cause: CloseReason) -> Self {
        Self(Repr::Closed(cause))
    }
}

/// For what returns `io::Error`s: an `AsyncRead` or a body that reads the output of a job.
///
/// The `JoinError` is the inner error ([`io::Error::into_inner`]).
impl From<JoinError> for io::Error {
    fn from(error: JoinError) -> Self {
        Self::other(error)
    }
}

impl JoinError {
    /// How a job ended that unwound with this payload.
    pub(crate) fn of_unwinding(payload: PanicPayload) -> Self {
        // `resume_unwind` of another job's error.
        match payload.into_inner().downcast::<Self>() {
            Ok(error) => *error,
            Err(payload) => Self(Repr::Panicked(Box::new(PanicPayload::new(payload)))),
        }
    }

    /// Makes the error of a job that has panicked with that payload.
    ///
    /// For code that catches a panic by itself and reports it as a job does. The error of
    /// another job that was thrown by [`resume_unwind`](Self::resume_unwind) comes back as it
    /// was.
    ///
    /// # Examples
    ///
    /// ```
    /// use twolane::JoinError;
    /// let caught = std::panic::catch_unwind(|| panic!("bad frame")).unwrap_err();
    /// let error = JoinError::from_panic(caught);
    /// assert!(error.is_panic());
    /// assert_eq!(error.to_string(), "the job panicked: bad frame");
    /// ```
    pub fn from_panic(payload: Box<dyn Any + Send + 'static>) -> Self {
        Self::of_unwinding(PanicPayload::new(payload))
    }

    pub(crate) fn full(limit: Full) -> Self {
        Self(Repr::Full(limit))
    }

    /// Why the job was closed, if it was.
    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        match self.0 {
            Repr::Closed(cause) => Some(cause),
            _ => None,
        }
    }

    /// Called when an error is dropped that no awaiter has read: logs a panic in it.
    pub(crate) fn report_unread(&self) {
        if let Repr::Panicked(payload) = &self.0 {
            crate::panics::report("a job without an awaiter", &payload.text());
        }
    }

    /// Returns the reason, for a `match`.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let error = cpu.spawn_cpu(|| panic!("boom")).wait().unwrap_err();
    /// assert_eq!(error.kind(), twolane::JoinErrorKind::Panic);
    /// ```
    pub fn kind(&self) -> JoinErrorKind {
        match self.0 {
            Repr::Panicked(_) => JoinErrorKind::Panic,
            Repr::Closed(cause) => cause.into(),
            Repr::Full(Full::Key(_)) => JoinErrorKind::KeyFull,
            Repr::Full(_) => JoinErrorKind::QueueFull,
            Repr::LateReader(_) => JoinErrorKind::Expired,
        }
    }

    /// Returns true if the queue was full, or that of the job's key, the job's deadline passed, or
    /// the lane was shut down, or got no threads: a service answers 503 to these, or 429 if the
    /// [key is full](JoinErrorKind::KeyFull).
    ///
    /// A closure of [`spawn_cpu`](crate::Handle::spawn_cpu) has not run then, unless
    /// [`within`](crate::Task::within) gave up on it: then it may still run. A future, and a
    /// closure that asks a checkpoint, may have run in part. To try again is safe if what has run
    /// is.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// cpu.shutdown().wait();
    /// let status = match cpu.spawn_cpu(|| "body").wait() {
    ///     Ok(_) => 200,
    ///     Err(error) if error.is_unavailable() => 503,
    ///     Err(_) => 500,
    /// };
    /// assert_eq!(status, 503);
    /// ```
    pub fn is_unavailable(&self) -> bool {
        use JoinErrorKind::{Expired, KeyFull, NoThreads, QueueFull, Shutdown};
        matches!(
            self.kind(),
            KeyFull | QueueFull | Expired | NoThreads | Shutdown
        )
    }

    /// Returns after which time it is worth trying again, if the job was refused because it would
    /// have waited for longer than its [`max_wait`](crate::Builder::max_wait): that time. The jobs
    /// that are queued now have begun by then. For a `Retry-After`.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// # cpu.shutdown().wait();
    /// if let Err(error) = cpu.spawn_cpu(|| "body").wait() {
    ///     let seconds = error.retry_after().map_or(1, |after| after.as_secs().max(1));
    ///     println!("503, Retry-After: {seconds}");
    /// }
    /// ```
    pub fn retry_after(&self) -> Option<Duration> {
        match self.0 {
            Repr::Full(Full::Time(most)) => Some(Duration::from_micros(most.into())),
            _ => None,
        }
    }

    /// Returns true if the job panicked.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let err = cpu.spawn_cpu(|| panic!("boom")).wait().unwrap_err();
    /// assert!(err.is_panic() && !err.is_cancelled());
    /// ```
    pub fn is_panic(&self) -> bool {
        self.kind() == JoinErrorKind::Panic
    }

    /// Returns true if the job was cancelled.
    ///
    /// [`Task::abort`](crate::Task::abort) and [`AbortHandle`](crate::AbortHandle) do that.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.spawn(std::future::pending::<()>());
    /// task.abort();
    /// assert!(task.wait().unwrap_err().is_cancelled());
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.kind() == JoinErrorKind::Cancelled
    }

    /// Returns the payload of the job's panic, for [`std::panic::resume_unwind`].
    ///
    /// # Panics
    ///
    /// If the job did not panic; see [`try_into_panic`](Self::try_into_panic).
    ///
    /// # Examples
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

    /// Returns the payload of the job's panic, or the error itself.
    ///
    /// # Errors
    ///
    /// The same error, if the job did not panic.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// cpu.shutdown().wait();
    /// let err = cpu.spawn_cpu(|| ()).wait().unwrap_err();
    /// assert_eq!(err.try_into_panic().unwrap_err().kind(), twolane::JoinErrorKind::Shutdown);
    /// ```
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, JoinError> {
        self.try_into_payload().map(PanicPayload::into_inner)
    }

    pub(crate) fn try_into_payload(self) -> Result<PanicPayload, Self> {
        match self.0 {
            Repr::Panicked(payload) => Ok(*payload),
            closed => Err(Self(closed)),
        }
    }

    /// Ends the calling job as this one ended.
    ///
    /// For an adapter that awaits a job in a place where it can return no error. It unwinds:
    /// with the payload of the job's panic, or with this error. No panic hook runs, so nothing
    /// is printed. A job that unwinds with an error of a job ends as that one did: if the lane
    /// was shut down, it is [`JoinErrorKind::Shutdown`] and not
    /// [`is_panic`](Self::is_panic). That holds if tasks of Tokio are in between that resume the
    /// panics of what they await.
    ///
    /// # Panics
    ///
    /// Always: it unwinds, and a program that is built with `panic = "abort"` ends.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// # let other = twolane::CpuRuntime::new().unwrap();
    /// # other.shutdown().wait();
    /// let part = other.spawn_cpu(|| 42); // of a lane that was shut down
    /// let job = cpu.spawn(async { part.await.unwrap_or_else(|error| error.resume_unwind()) });
    /// assert_eq!(job.wait().unwrap_err().kind(), twolane::JoinErrorKind::Shutdown);
    /// ```
    pub fn resume_unwind(self) -> ! {
        let payload = self.try_into_panic();
        std::panic::resume_unwind(payload.unwrap_or_else(|error| Box::new(error)))
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Panicked(payload) => write!(f, "the job panicked: {}", payload.text()),
            Repr::Closed(cause) => f.write_str(cause.text()),
            Repr::Full(limit) => limit.fmt(f),
            Repr::LateReader(limit) => write!(
                f,
                "the reader of the stream took nothing for its `reader_timeout` of {limit:?}: set a \
                 longer one if it may pause, or have a task read on"
            ),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Panicked(payload) => write!(f, "JoinError::Panic({:?})", payload.text()),
            Repr::Closed(cause) => write!(f, "JoinError::{cause:?}"),
            Repr::Full(limit) => write!(f, "JoinError::{:?}({limit:?})", self.kind()),
            Repr::LateReader(limit) => write!(f, "JoinError::LateReader({limit:?})"),
        }
    }
}

impl Error for JoinError {}
