//! [`BuildError`]: why [`Builder::build`](crate::Builder::build) failed.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use crate::priority::Priority;

/// The error of [`Builder::build`](crate::Builder::build).
///
/// There is no Tokio runtime to be the I/O lane, or it has ended; a setting is invalid; or the
/// operating system gives no thread. Its text names the setting, the value, the limit and the
/// remedy, so it is for a person and not for a `match`. If the operating system gave no thread,
/// [`source`](Error::source) is its `io::Error`.
///
/// # Examples
///
/// ```
/// // There is no Tokio runtime here, and no `io_handle`:
/// let err = twolane::CpuRuntime::new().unwrap_err();
/// assert!(err.to_string().contains("Builder::io_handle"));
/// ```
pub struct BuildError(BuildErrorKind);

#[cfg_attr(test, derive(Debug))]
pub(crate) enum BuildErrorKind {
    /// There is no Tokio runtime here to be the I/O lane, and
    /// [`Builder::io_handle`](crate::Builder::io_handle) was not called.
    NoIoRuntime,
    /// The Tokio runtime that was to be the I/O lane has been shut down.
    IoRuntimeGone,
    /// [`Builder::worker_threads`](crate::Builder::worker_threads) was given a number
    /// outside `1..=max`.
    Threads {
        /// The number that was set.
        asked: usize,
        /// The largest number of threads of a lane.
        max: usize,
    },
    /// The environment variable `TWOLANE_CPU_THREADS` is not a number in
    /// `1..=max`.
    EnvThreads {
        /// The variable's value.
        value: String,
        /// The largest number of threads of a lane.
        max: usize,
    },
    /// [`Builder::nice`](crate::Builder::nice) was given more than 19.
    Nice {
        /// The priority of the value.
        priority: Priority,
        /// The value that was set.
        asked: u8,
        /// The largest value.
        max: u8,
    },
    /// [`Builder::interrupt_cores_every`](crate::Builder::interrupt_cores_every) was given too
    /// short or too long a period.
    Interrupts {
        /// The period that was set.
        asked: Duration,
        /// The shortest period.
        min: Duration,
        /// The longest one.
        max: Duration,
    },
    /// [`Builder::thread_stack_size`](crate::Builder::thread_stack_size) was given too few bytes.
    StackSize {
        /// The number that was set.
        asked: usize,
        /// The smallest stack.
        min: usize,
    },
    /// A priority has a higher [nice value](crate::Builder::nice) than a less urgent one.
    NiceOrder {
        /// The more urgent priority, and its value.
        urgent: (Priority, u8),
        /// The less urgent priority, and its smaller value.
        patient: (Priority, u8),
    },
    /// [`Builder::thread_name`](crate::Builder::thread_name) was given a name
    /// with a NUL byte in it, which no platform accepts.
    ThreadName {
        /// The name that was set.
        asked: String,
    },
    /// [`Builder::queue_limit`](crate::Builder::queue_limit) was given a number
    /// outside `1..=max`.
    QueueLimit {
        /// The priority of the limit.
        priority: Priority,
        /// The limit that was set.
        asked: usize,
        /// The largest limit.
        max: usize,
    },
    /// [`Builder::watch_io`](crate::Builder::watch_io) was given a watch that does not
    /// [start](stallwatch::Watch::start): its threshold is too low.
    Watch(io::Error),
    /// The operating system gave no thread.
    Spawn(io::Error),
}

impl From<BuildErrorKind> for BuildError {
    fn from(kind: BuildErrorKind) -> Self {
        Self(kind)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use BuildErrorKind as Kind;
        match &self.0 {
            Kind::NoIoRuntime => f.write_str(
                "no Tokio runtime here to be the I/O lane: build the CpuRuntime inside one \
                 (#[tokio::main], Runtime::enter) or name one with Builder::io_handle",
            ),
            Kind::IoRuntimeGone => f.write_str(
                "the Tokio runtime that was to be the I/O lane has been shut down: \
                 give Builder::io_handle the handle of one that runs",
            ),
            Kind::Threads { asked, max } => write!(
                f,
                "Builder::worker_threads({asked}): the CPU lane takes 1 to {max} threads; \
                 leave it out for one per core"
            ),
            Kind::EnvThreads { value, max } => write!(
                f,
                "TWOLANE_CPU_THREADS={value:?}: the CPU lane takes 1 to {max} threads; \
                 unset the variable for one per core"
            ),
            Kind::Nice {
                priority,
                asked,
                max,
            } => write!(
                f,
                "Builder::nice({priority:?}, {asked}): a nice value can be raised by 0 to {max}"
            ),
            Kind::NiceOrder { urgent, patient } => write!(
                f,
                "Builder::nice({:?}, {}) would yield to {:?} at {}: give the more urgent \
                 priority a value that is not above the other's",
                urgent.0, urgent.1, patient.0, patient.1
            ),
            Kind::Interrupts { asked, min, max } => write!(
                f,
                "Builder::interrupt_cores_every({asked:?}): a period is {min:?} to {max:?}; \
                 Duration::ZERO turns the interrupts off"
            ),
            Kind::StackSize { asked, min } => write!(
                f,
                "Builder::thread_stack_size({asked}): a stack takes at least {min} bytes; \
                 leave it out for the default of the standard library"
            ),
            Kind::ThreadName { asked } => write!(
                f,
                "Builder::thread_name({asked:?}): a thread's name cannot hold a NUL byte"
            ),
            Kind::QueueLimit {
                priority,
                asked,
                max,
            } => write!(
                f,
                "Builder::queue_limit({priority:?}, {asked}): a limit is 1 to {max} jobs; \
                 leave it out for none"
            ),
            Kind::Watch(error) => error.fmt(f),
            // The cause is the `source`, so it is not repeated here.
            Kind::Spawn(_) => f.write_str("the operating system gave the CPU lane no thread"),
        }
    }
}

/// The text of `Display`, and the cause. `main` prints this text for an error that it
/// returns.
impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            BuildErrorKind::Spawn(cause) => write!(f, "{self}: {cause}"),
            _ => write!(f, "{self}"),
        }
    }
}

impl Error for BuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            BuildErrorKind::Spawn(cause) => Some(cause),
            _ => None,
        }
    }
}
