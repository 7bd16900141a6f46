//! [`FairError`].

use std::fmt;

use twolane_core::JoinError;

/// Why a job of a [`Key`](super::Key) has no output.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use twolane::fair::FairError;
/// use twolane::{CpuRuntime, Fair};
///
/// /// A client's own flood is a 429, a busy service a 503.
/// fn status(error: &FairError) -> u16 {
///     match error.is_key_full() {
///         true => 429,
///         false if error.is_unavailable() => 503,
///         false => 500,
///     }
/// }
///
/// let cpu = CpuRuntime::builder().worker_threads(1).build().unwrap();
/// let fair = Fair::new(cpu.handle()).max_queued_per_key(1);
/// let acme = fair.key("acme");
/// let (release, held) = std::sync::mpsc::channel::<()>();
/// let running = acme.spawn_cpu(move || held.recv());
/// let queued = acme.spawn_cpu(|| 1);
/// let error = acme.spawn_cpu(|| 2).await.unwrap_err();
/// assert!(error.is_queue_full() && error.is_key_full());
/// assert_eq!(status(&error), 429);
/// # release.send(()).unwrap();
/// # running.await.unwrap().unwrap();
/// # queued.await.unwrap();
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum FairError {
    /// This key has so many jobs queued, or so many futures that have begun, as
    /// [`max_queued_per_key`](super::Fair::max_queued_per_key) allows.
    KeyFull(usize),
    /// So many other keys have jobs queued, as [`max_keys`](super::Fair::max_keys) allows.
    KeysFull(usize),
    /// The lane's error.
    Job(JoinError),
}

impl FairError {
    /// Whether there was no room: in the key's queue, or for another key.
    ///
    /// # Examples
    ///
    /// See [`FairError`].
    pub fn is_queue_full(&self) -> bool {
        !matches!(self, Self::Job(_))
    }

    /// Whether the key has too many jobs queued, or futures that have begun: a service answers 429.
    ///
    /// # Examples
    ///
    /// See [`FairError`].
    pub fn is_key_full(&self) -> bool {
        matches!(self, Self::KeyFull(_))
    }

    /// Whether the same job may succeed later: there was no room, or as
    /// [`JoinError::is_unavailable`]. A service answers 503, or 429 if
    /// [the key is full](Self::is_key_full).
    ///
    /// # Examples
    ///
    /// See [`FairError`].
    pub fn is_unavailable(&self) -> bool {
        !matches!(self, Self::Job(error) if !error.is_unavailable())
    }
}

impl fmt::Display for FairError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const KEY: &str = "jobs of this key wait, its limit: submit fewer, or raise";
        const KEYS: &str = "other keys have jobs queued, the limit: try later, or raise";
        match self {
            Self::KeyFull(limit) => write!(f, "{limit} {KEY} `max_queued_per_key`"),
            Self::KeysFull(limit) => write!(f, "{limit} {KEYS} `max_keys`"),
            Self::Job(error) => error.fmt(f),
        }
    }
}

// No `source`: the text is that of the error inside.
impl std::error::Error for FairError {}
