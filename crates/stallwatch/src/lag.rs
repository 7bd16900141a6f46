//! [`Lag`]: how late the runtime is.

use std::fmt;
use std::time::Duration;

/// How long a probe of the runtime has waited.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use stallwatch::Lag;
///
/// let lag = Lag::Socket(Duration::from_millis(12));
/// assert_eq!(lag.waited(), Duration::from_millis(12));
/// assert_eq!(lag.to_string(), "12ms (a socket)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lag {
    /// From the moment at which a socket could be read until its task was polled. It is what a
    /// request waits for that comes in: a worker that is busy may be the one that has to ask the
    /// kernel for events, while another one sleeps. Timers wait for the same worker.
    Socket(Duration),
    /// From the spawn of a task to its first poll.
    Task(Duration),
}

impl Lag {
    /// Returns how long that was.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use stallwatch::Watch;
    ///
    /// let watch = Watch::new().on_probe(|lag| {
    ///     if lag.waited() > Duration::from_millis(50) {
    ///         println!("the runtime is late: {lag}");
    ///     }
    /// });
    /// # let _ = watch;
    /// ```
    pub fn waited(self) -> Duration {
        let (Self::Socket(waited) | Self::Task(waited)) = self;
        waited
    }
}

impl fmt::Display for Lag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match self {
            Self::Socket(_) => "a socket",
            Self::Task(_) => "a task",
        };
        write!(f, "{:?} ({of})", self.waited())
    }
}
