//! [`BuildError`]: what a [`Builder`](crate::Builder) was given that can't be.

use std::error::Error;
use std::fmt;
use std::io;

use crate::priority::Priority;

/// Why [`Builder::build`](crate::Builder::build) made no runtime.
///
/// ```
/// // No Tokio runtime around, and none named:
/// let err = twolane::CpuRuntime::new().unwrap_err();
/// assert!(err.to_string().contains("Builder::io_handle"));
/// ```
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
    /// The environment variable `TWOLANE_CPU_THREADS` is not a number in
    /// `1..=max`.
    EnvThreads {
        /// Its value.
        value: String,
        /// The most that one lane can have.
        max: usize,
    },
    /// [`Builder::nice`](crate::Builder::nice) was given more than 19.
    Nice {
        /// For which priority.
        priority: Priority,
        /// What was asked for.
        asked: u8,
        /// The most.
        max: u8,
    },
    /// The [nice values](crate::Builder::nice) of two priorities are the wrong
    /// way round.
    NiceOrder {
        /// The more urgent one, and its value.
        urgent: (Priority, u8),
        /// The less urgent one, and its smaller value.
        patient: (Priority, u8),
    },
    /// [`Builder::thread_name`](crate::Builder::thread_name) was given a name
    /// with a NUL byte in it, which no platform accepts.
    ThreadName {
        /// What was asked for.
        asked: String,
    },
    /// [`Builder::queue_limit`](crate::Builder::queue_limit) was given a number
    /// outside `1..=max`.
    QueueLimit {
        /// For which priority.
        priority: Priority,
        /// What was asked for.
        asked: usize,
        /// The most that a limit can be.
        max: usize,
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
            Self::EnvThreads { value, max } => write!(
                f,
                "TWOLANE_CPU_THREADS={value:?}: the CPU lane takes 1 to {max} threads; \
                 unset the variable for one per core"
            ),
            Self::Nice {
                priority,
                asked,
                max,
            } => write!(
                f,
                "Builder::nice({priority:?}, {asked}): a nice value can be raised by 0 to {max}"
            ),
            Self::NiceOrder { urgent, patient } => write!(
                f,
                "Builder::nice({:?}, {}) would yield to {:?} at {}: give the more urgent \
                 priority a value that is not above the other's",
                urgent.0, urgent.1, patient.0, patient.1
            ),
            Self::ThreadName { asked } => write!(
                f,
                "Builder::thread_name({asked:?}): a thread's name cannot hold a NUL byte"
            ),
            Self::QueueLimit {
                priority,
                asked,
                max,
            } => write!(
                f,
                "Builder::queue_limit({priority:?}, {asked}): a limit is 1 to {max} jobs; \
                 leave it out for none"
            ),
            // The cause is the `source`, so it is not repeated here.
            Self::Spawn(_) => f.write_str("the operating system gave the CPU lane no thread"),
        }
    }
}

/// The same text, and the cause: it is what `main` prints of an error that it
/// returns.
impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spawn(cause) => write!(f, "{self}: {cause}"),
            _ => write!(f, "{self}"),
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
