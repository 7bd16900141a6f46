//! [`Key`]: for whom a job computes.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};

/// For whom a job computes: a customer, a user, an API token.
///
/// Jobs of [`Handle::with_key`](crate::Handle::with_key) share the threads by their keys. A key is
/// its name: two keys of one name are the same key. To make one costs an allocation.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use twolane::Key;
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// // Twice the share of a key of weight 1, and 32 jobs at a time.
/// let acme = Key::new("acme").with_weight(2).with_max_jobs(32);
/// assert_eq!(cpu.handle().with_key(acme).spawn_cpu(|| 6 * 7).await.unwrap(), 42);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Key {
    pub(crate) name: KeyName,
    pub(crate) weight: u16,
    pub(crate) max_jobs: u16,
}

/// A name, by its hash first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyName {
    pub(crate) hash: u64,
    pub(crate) text: Arc<str>,
}

impl Key {
    /// A key of that name, of weight 1, with room for 256 jobs.
    ///
    /// Take the name from what you have *authenticated*: who can invent keys gets a share for each.
    ///
    /// # Examples
    ///
    /// See [`Key`].
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        // Seeded, so that a client cannot make keys whose hashes agree.
        static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let text = name.into();
        let hash = SEED.hash_one(&text);
        Self {
            name: KeyName { hash, text },
            weight: 1,
            max_jobs: 256,
        }
    }

    /// Sets the share of the threads' time, beside keys of weight 1. Give all jobs of a key the same
    /// weight: the order of the queue goes by that of the last one that came, a limit in time by
    /// that of the first of those that wait.
    ///
    /// # Panics
    ///
    /// If `weight` is 0.
    ///
    /// # Examples
    ///
    /// See [`Key`].
    #[must_use]
    pub fn with_weight(mut self, weight: u16) -> Self {
        assert!(weight > 0, "Key::with_weight(0): at least 1");
        self.weight = weight;
        self
    }

    /// Sets how many jobs of the key a priority accepts that have not ended: queued, running, and
    /// futures that wait for something; and permits. One more is refused
    /// ([`KeyFull`](crate::JoinErrorKind::KeyFull)). A job that was cancelled counts until the lane
    /// has dropped what it captured. What jobs submit counts and is not refused. The default is 256.
    ///
    /// # Panics
    ///
    /// If `jobs` is 0.
    ///
    /// # Examples
    ///
    /// See [`Key`].
    #[must_use]
    pub fn with_max_jobs(mut self, jobs: u16) -> Self {
        assert!(jobs > 0, "Key::with_max_jobs(0): at least 1");
        self.max_jobs = jobs;
        self
    }
}

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for Key {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}
