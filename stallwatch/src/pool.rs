//! [`Pool`]: threads beside the runtime whose work is watched, too.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::name::Name;
use crate::record::{Job, Kind};
use crate::scope::{self, Entered};
use crate::watching::is_watched;

/// A kind of work of a [`Pool`].
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// How long a piece of it may take: this or the watch's threshold, whichever is longer.
    /// `None`: as long as it likes, until its deadline has passed. After that, no longer than
    /// the threshold.
    pub limit: Option<Duration>,
    /// What to do about it, where it computes for longer: a sentence without a full stop.
    pub remedy: &'static str,
}

/// A pool of threads that computes for the tasks of a runtime, and whose work is watched, too:
/// for a library with such a pool.
///
/// Its threads call [`enter`](Self::enter) around each piece of work, and a watch gets to know it
/// by [`Watch::pool`](crate::Watch::pool).
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use std::time::Duration;
/// use stallwatch::{Name, Pool, Watch, Work};
///
/// const SLICE: usize = 0;
/// static KINDS: [Work; 1] = [Work {
///     limit: Some(Duration::from_millis(100)),
///     remedy: "Cut it into smaller slices",
/// }];
///
/// let pool = Pool::new(&KINDS);
/// let watcher = Watch::new().pool(&pool).start(&tokio::runtime::Handle::current()).unwrap();
/// std::thread::spawn(move || {
///     let _in = pool.enter(SLICE, Name::named("resize"), None);
///     // Computes.
/// });
/// assert_eq!(watcher.pool_stalls(), 0);
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// Never 0.
    pub(crate) number: usize,
    pub(crate) kinds: &'static [Work],
    pub(crate) offload: Option<&'static str>,
}

impl Pool {
    /// Returns a new pool with these kinds of work.
    pub fn new(kinds: &'static [Work]) -> Self {
        static POOLS: AtomicUsize = AtomicUsize::new(1);
        Self {
            number: POOLS.fetch_add(1, Relaxed),
            kinds,
            offload: None,
        }
    }

    /// Sets the [remedy](crate::Stall::remedy) for polls of the runtime that compute: how this
    /// pool is used. A sentence without a full stop.
    pub fn offload_by(mut self, remedy: &'static str) -> Self {
        self.offload = Some(remedy);
        self
    }

    /// This thread is inside of work of this kind (an index of what [`new`](Self::new) got) until
    /// the guard is dropped. `None` while no runtime of the process is watched.
    ///
    /// # Panics
    ///
    /// If there is no such kind.
    ///
    /// # Cost
    ///
    /// As that of [`enter`](crate::enter).
    #[must_use]
    #[inline]
    pub fn enter(&self, kind: usize, name: Name, deadline: Option<Instant>) -> Option<Entered> {
        if !is_watched() {
            return None;
        }
        assert!(
            kind < self.kinds.len(),
            "the pool has no work of kind {kind}"
        );
        let job = Job::new(self.number, deadline);
        scope::enter_as(Kind::Work(kind as u32), name, job)
    }

    pub(crate) fn kind(&self, kind: u32) -> Option<&'static Work> {
        self.kinds.get(kind as usize)
    }
}
