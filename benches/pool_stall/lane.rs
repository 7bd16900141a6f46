//! Which lane a thread belongs to, told by its name and by nothing else.

use std::fmt;
use std::thread;

/// The side of the program that something was seen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// A thread named `io-...`, or what belongs to that runtime.
    Io,
    /// A thread named `cpu-...`, or what belongs to that runtime.
    Cpu,
    /// Seen, and neither of the two.
    Other,
    /// Not seen, or not observable on this platform.
    Unknown,
}

impl Lane {
    pub fn of_current_thread() -> Self {
        match thread::current().name() {
            Some(name) if name.starts_with("io-") => Self::Io,
            Some(name) if name.starts_with("cpu-") => Self::Cpu,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Io => "io",
            Self::Cpu => "cpu",
            Self::Other => "other",
            Self::Unknown => "unknown",
        })
    }
}
