//! [`Record`]: what a thread writes of itself, and the watch reads.

use std::collections::VecDeque;
use std::sync::atomic::{self, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use Ordering::{Acquire, Relaxed, Release, SeqCst};

use tokio::runtime::Id;

use crate::kernel::{self, Times};
use crate::name::Name;
use crate::sync::{AtomicU32, AtomicU64};

/// The records of all threads that have entered anything while a runtime was watched.
static RECORDS: Mutex<Vec<Arc<Record>>> = Mutex::new(Vec::new());

/// Changes with `RECORDS`. So a look seldom takes the lock: a process that forks meanwhile has a
/// child that finds it taken for ever.
static VERSION: AtomicUsize = AtomicUsize::new(0);

/// How many probes have run, of all watches.
static PROBES: atomic::AtomicU64 = atomic::AtomicU64::new(0);

/// The thresholds of all watches. Locked where a watch begins or ends.
static THRESHOLDS: Mutex<Vec<Duration>> = Mutex::new(Vec::new());

/// The least of them, in microseconds.
static LONG: atomic::AtomicU64 = atomic::AtomicU64::new(u64::MAX);

/// So many polls that took long a thread keeps, from one look to the next.
const KEPT: usize = 32;

/// Before any deadline.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Polls that take as long as the least of these are kept from now on.
pub(crate) fn change_thresholds(change: impl FnOnce(&mut Vec<Duration>)) {
    let mut all = THRESHOLDS.lock().unwrap_or_else(PoisonError::into_inner);
    change(&mut all);
    let least = all.iter().min().unwrap_or(&Duration::MAX).as_micros();
    LONG.store(u64::try_from(least).unwrap_or(u64::MAX), Relaxed);
}

/// A poll that takes so long is to be kept.
pub(crate) fn long() -> Duration {
    Duration::from_micros(LONG.load(Relaxed))
}

/// Never 0.
#[cold]
fn nanos(instant: Instant) -> u64 {
    let nanos = instant.saturating_duration_since(*EPOCH).as_nanos();
    u64::try_from(nanos).unwrap_or(u64::MAX).max(1)
}

fn lock() -> MutexGuard<'static, Vec<Arc<Record>>> {
    RECORDS.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn all() -> Vec<Arc<Record>> {
    lock().clone()
}

/// Changes whenever [`all`] does.
pub(crate) fn version() -> usize {
    VERSION.load(SeqCst)
}

/// What a thread is inside of, which decides how long is too long: of work, the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(u32);

impl Kind {
    /// A poll on a runtime.
    pub(crate) const POLL: Self = Self(0);

    /// Something inside of a span, on any thread.
    pub(crate) const SPAN: Self = Self(1);

    pub(crate) fn of_new_pool() -> Self {
        static NEXT: atomic::AtomicU32 = atomic::AtomicU32::new(2);
        Self(NEXT.fetch_add(1, Relaxed))
    }

    pub(crate) fn is_of_pool(self) -> bool {
        self != Self::POLL && self != Self::SPAN
    }
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    /// Odd while the thread is inside of something.
    count: AtomicU64,
    kind: AtomicU32,
    outer: AtomicU32,
    inner: AtomicU32,
    /// Nanoseconds from `EPOCH`, or 0.
    deadline: AtomicU64,
    /// Nanoseconds in polls and spans that are over.
    named: atomic::AtomicU64,
    /// Polls that took [`long`], the last one first.
    ended: Mutex<VecDeque<Ended>>,
    /// The number of the last probe of a watch that ran on this thread, or 0.
    probe: AtomicU64,
    pub(crate) thread: String,
    /// The number of the operating system, or 0. In a forked child it is another one.
    id: AtomicU32,
    /// The runtime in whose context the thread has last entered something that is no work of a
    /// pool.
    runtime: Mutex<Option<Id>>,
}

/// What the watch reads of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Activity {
    /// Distinguishes this poll from all others of the thread.
    pub(crate) count: u64,
    pub(crate) kind: Kind,
    pub(crate) outer: Name,
    /// The innermost one: the same, or a span.
    pub(crate) inner: Name,
    deadline: u64,
}

/// A poll that took long, and is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) activity: Activity,
    pub(crate) begun: Instant,
    pub(crate) took: Duration,
    pub(crate) runtime: Option<Id>,
    /// Of the thread, at its end.
    pub(crate) times: Option<Times>,
}

impl Activity {
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        self.deadline > 0 && nanos(now) >= self.deadline
    }
}

impl Record {
    pub(crate) fn of_this_thread() -> Arc<Self> {
        let thread = thread::current();
        let record = Arc::new(Self {
            thread: thread.name().unwrap_or("without a name").to_owned(),
            ..Self::default()
        });
        record.set_id();
        lock().push(record.clone());
        VERSION.fetch_add(1, SeqCst);
        record
    }

    /// The thread ends.
    pub(crate) fn remove(self: &Arc<Self>) {
        lock().retain(|record| !Arc::ptr_eq(record, self));
        VERSION.fetch_add(1, SeqCst);
    }

    /// Called by the record's own thread, as all that writes.
    pub(crate) fn begin(&self, kind: Kind, name: Name, deadline: Option<Instant>) {
        // Release, here and below, and Acquire where the watch reads: if it reads the new
        // name, it finds the count changed since the old poll.
        self.kind.store(kind.0, Release);
        self.outer.store(name.index(), Release);
        self.deadline.store(deadline.map_or(0, nanos), Release);
        self.set_inner(name);
        self.count_on();
    }

    pub(crate) fn end(&self) {
        self.count_on();
    }

    /// To be called before the end of a poll.
    pub(crate) fn add_named(&self, took: Duration) {
        let named = self.named() + took;
        self.named.store(named.as_nanos() as u64, Relaxed);
    }

    pub(crate) fn named(&self) -> Duration {
        Duration::from_nanos(self.named.load(Relaxed))
    }

    /// To be called before the end of a poll that took [`long`].
    #[cold]
    pub(crate) fn keep(&self, begun: Instant, took: Duration, runtime: Option<Id>) {
        let Some(activity) = self.read() else { return };
        let poll = Ended {
            activity,
            begun,
            took,
            runtime,
            times: kernel::own_times(),
        };
        // If the watch reads the list right now, this one is left out. Neither waits for the lock:
        // in a child that was forked meanwhile it may be taken for ever.
        if let Ok(mut ended) = self.ended.try_lock() {
            ended.truncate(KEPT - 1);
            ended.push_front(poll);
        }
    }

    /// The polls after that count that took long and are over, the oldest first.
    pub(crate) fn ended_after(&self, count: u64) -> Vec<Ended> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let new = ended
            .iter()
            .take_while(|ended| ended.activity.count > count);
        let mut new: Vec<Ended> = new.copied().collect();
        new.reverse();
        new
    }

    fn count_on(&self) {
        self.count.store(self.count.load(Relaxed) + 1, Release);
    }

    pub(crate) fn kind(&self) -> Kind {
        Kind(self.kind.load(Relaxed))
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    pub(crate) fn inner(&self) -> Name {
        Name(self.inner.load(Relaxed))
    }

    pub(crate) fn set_inner(&self, name: Name) {
        self.inner.store(name.index(), Release);
    }

    #[cfg(feature = "spans")]
    pub(crate) fn set_names(&self, outer: Name, inner: Name) {
        self.outer.store(outer.index(), Release);
        self.set_inner(inner);
    }

    pub(crate) fn set_runtime(&self, runtime: Option<Id>) {
        *self.runtime.lock().unwrap_or_else(PoisonError::into_inner) = runtime;
    }

    pub(crate) fn set_id(&self) {
        self.id.store(kernel::thread_id().unwrap_or(0), Relaxed);
    }

    pub(crate) fn id(&self) -> Option<u32> {
        Some(self.id.load(Relaxed)).filter(|id| *id > 0)
    }

    pub(crate) fn set_probed(&self) {
        let number = PROBES.fetch_add(1, Relaxed) + 1;
        self.probe.store(number, Relaxed);
    }

    /// `None` if the thread is inside of nothing.
    pub(crate) fn read(&self) -> Option<Activity> {
        let count = self.count.load(Acquire);
        let activity = Activity {
            count,
            kind: Kind(self.kind.load(Acquire)),
            outer: Name(self.outer.load(Acquire)),
            inner: Name(self.inner.load(Acquire)),
            deadline: self.deadline.load(Acquire),
        };
        (count % 2 == 1 && self.count.load(Relaxed) == count).then_some(activity)
    }

    #[cfg(test)]
    pub(crate) fn activity_for_tests() -> Activity {
        let record = Self::default();
        record.begin(Kind::POLL, Name::OTHER, None);
        record.read().unwrap()
    }

    pub(crate) fn runtime(&self) -> Option<Id> {
        *self.runtime.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the last probe that ran on this thread. A later one has a higher
    /// number.
    pub(crate) fn last_probe(&self) -> Option<u64> {
        Some(self.probe.load(Relaxed)).filter(|probe| *probe > 0)
    }
}
