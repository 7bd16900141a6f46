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
    pub(crate) remedy: &'static str,
    pub(crate) limit: Option<Duration>,
    pub(crate) can_await: bool,
}

impl Work {
    /// Returns work that may take as long as it likes, until its deadline has passed. After that,
    /// it may compute or block no longer than the watch's threshold. `remedy` is what to do about
    /// it where it computes: a sentence without a full stop.
    pub const fn new(remedy: &'static str) -> Self {
        Self {
            remedy,
            limit: None,
            can_await: false,
        }
    }

    /// The same, which may take so long, or the watch's threshold if that is longer, whatever its
    /// deadline.
    #[must_use]
    pub const fn with_limit(self, limit: Duration) -> Self {
        let limit = Some(limit);
        Self { limit, ..self }
    }

    /// The same for polls of futures: the remedy of one that sleeps is to await.
    #[must_use]
    pub const fn of_futures(self) -> Self {
        let can_await = true;
        Self { can_await, ..self }
    }
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
/// static KINDS: [Work; 1] =
///     [Work::new("Cut it into smaller slices").with_limit(Duration::from_millis(100))];
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
    #[must_use]
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
    #[must_use]
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
        assert!(
            kind < self.kinds.len(),
            "the pool has no work of kind {kind}"
        );
        if !is_watched() {
            return None;
        }
        let job = Job::new(self.number, deadline);
        scope::enter_as(Kind::Work(kind as u32), name, job)
    }

    pub(crate) fn kind(&self, kind: u32) -> Option<&'static Work> {
        self.kinds.get(kind as usize)
    }
}
