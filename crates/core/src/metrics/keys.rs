//! [`KeyUsage`]: what the jobs of one key use.

use std::sync::Arc;
use std::time::Duration;

use crate::priority::Priority;

/// What the jobs of one [key](crate::Key) use at one [`Priority`].
///
/// [`CallSites::keys`](super::CallSites::keys) returns it.
///
/// # Examples
///
/// See [`CallSites::keys`](super::CallSites::keys).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeyUsage {
    /// The key's name.
    pub key: Arc<str>,
    /// Of these jobs.
    pub priority: Priority,
    /// Jobs that wait for a thread, with those that were cancelled and wait to be dropped.
    pub queued: u64,
    /// For how long the steps that have ended computed, since the key became known: CPU time, or an
    /// eighth of the time of those that sleep.
    pub computed: Duration,
}

impl KeyUsage {
    /// How many of each priority are told.
    pub(crate) const MOST: usize = 32;
}
