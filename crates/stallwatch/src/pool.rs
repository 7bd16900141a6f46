//! [`Pool`]: threads beside the runtime whose work is watched, too.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::name::Name;
use crate::record::Kind;
use crate::scope::{self, Entered};
use crate::watching::is_watched;

/// Threads that compute for the tasks of a runtime, and whose work is watched, too: for a
/// library that has such threads.
///
/// They call [`enter`](Self::enter) around each piece of work, and a watch gets to know it by
/// [`Watch::pool`](crate::Watch::pool). Threads that do several kinds of work, each with a limit
/// and a remedy of its own, are a pool for each kind.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use std::time::Duration;
/// use stallwatch::{Name, Pool, Watch};
///
/// let pool = Pool::new("Cut it into smaller slices").with_limit(Duration::from_millis(100));
/// let watcher = Watch::new().pool(&pool).start(&tokio::runtime::Handle::current()).unwrap();
/// std::thread::spawn(move || {
///     let _in = pool.enter(Name::named("resize"), None);
///     // Computes.
/// });
/// assert_eq!(watcher.pool_stalls(), 0);
/// # }
/// ```
#[derive(Clone)]
pub struct Pool {
    pub(crate) kind: Kind,
    pub(crate) remedy: &'static str,
    pub(crate) limit: Option<Duration>,
    pub(crate) can_await: bool,
    pub(crate) offload: Option<(&'static str, &'static str)>,
    /// What to do about work that waits, and whether that counts now.
    pub(crate) waits: Option<(&'static str, Count)>,
}

type Count = Arc<dyn Fn() -> bool + Send + Sync>;

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pool = f.debug_struct("Pool");
        pool.field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Pool {
    /// Returns a new pool, whose work may take as long as it likes, until its deadline has passed.
    /// After that, it may compute or block no longer than the watch's threshold. `remedy` is what
    /// to do about it where it computes: a sentence without a full stop.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use stallwatch::{Name, Pool};
    ///
    /// let pool = Pool::new("Stop it when its request is gone");
    /// // A watch of this pool reports work that goes on after its deadline.
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// let _in = pool.enter(Name::named("resize"), Some(deadline));
    /// ```
    #[must_use]
    pub fn new(remedy: &'static str) -> Self {
        Self {
            kind: Kind::of_new_pool(),
            remedy,
            limit: None,
            can_await: false,
            offload: None,
            waits: None,
        }
    }

    /// Its work may take so long, or the watch's threshold if that is longer, whatever its
    /// deadline.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use stallwatch::{Name, Pool};
    ///
    /// let pool = Pool::new("Cut it into smaller slices").with_limit(Duration::from_millis(100));
    /// // A watch of this pool reports work that takes longer.
    /// let _in = pool.enter(Name::named("resize"), None);
    /// ```
    #[must_use]
    pub fn with_limit(self, limit: Duration) -> Self {
        let limit = Some(limit);
        Self { limit, ..self }
    }

    /// Its work may compute as long as it likes, but wait in one system call for no longer than a
    /// second while `count` returns true: while other work queues behind it, say. The watch's
    /// thread calls it at each look at such work, so it must be quick. `remedy` is what to do about
    /// it. Without effect on work that has a [limit](Self::with_limit).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    /// use stallwatch::Pool;
    ///
    /// let queued = Arc::new(AtomicUsize::new(0));
    /// let queue = queued.clone();
    /// let pool = Pool::new("Stop it when its request is gone")
    ///     .with_waits("Read the file before the job", move || queue.load(Relaxed) > 0);
    /// # let _ = pool;
    /// ```
    #[must_use]
    pub fn with_waits(
        self,
        remedy: &'static str,
        count: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        let waits = Some((remedy, Arc::new(count) as Count));
        Self { waits, ..self }
    }

    /// Its work is polls of futures: the remedy of one that sleeps is to await.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::{Name, Pool};
    ///
    /// let pool = Pool::new("Call `yield_now().await` in its loops").of_futures();
    /// let poll = pool.enter(Name::named("merge"), None);
    /// // The pool polls the future.
    /// drop(poll);
    /// ```
    #[must_use]
    pub fn of_futures(self) -> Self {
        let can_await = true;
        Self { can_await, ..self }
    }

    /// Sets the [remedy](crate::Stall::remedy) for polls of the runtime that compute: how this
    /// pool is used. `if_spawned` is what a report of code without a name says besides: what to do if work of
    /// this pool has spawned it. Both are sentences without a full stop.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::{Pool, Watch};
    ///
    /// let pool = Pool::new("Cut it into smaller slices")
    ///     .offload_by("Compute in `pool.run(move || ..).await?`", "In the pool, spawn by `pool.spawn`");
    /// let watch = Watch::new().pool(&pool);
    /// # let _ = watch;
    /// ```
    #[must_use]
    pub fn offload_by(self, remedy: &'static str, if_spawned: &'static str) -> Self {
        let offload = Some((remedy, if_spawned));
        Self { offload, ..self }
    }

    /// This thread is inside of work of this pool until the guard is dropped. `None` while no
    /// runtime of the process is watched.
    ///
    /// # Cost
    ///
    /// Some nanoseconds; one load while nothing is watched.
    ///
    /// # Examples
    ///
    /// ```
    /// use stallwatch::{Name, Pool};
    ///
    /// fn run(pool: &Pool, job: impl FnOnce() -> u32) -> u32 {
    ///     let _in = pool.enter(Name::named("resize"), None);
    ///     job()
    /// }
    /// let pool = Pool::new("Cut it into smaller slices");
    /// assert_eq!(run(&pool, || 6 * 7), 42);
    /// ```
    #[must_use]
    #[inline]
    pub fn enter(&self, name: Name, deadline: Option<Instant>) -> Option<Entered> {
        if !is_watched() {
            return None;
        }
        scope::enter_as(self.kind, name, deadline)
    }
}
