//! [`QueryGuard`] and [`InQuery`]: [`threads_of_ended_queries`] counts the threads that compute for
//! a query that has ended.
//!
//! A query can be dropped while tasks that it has spawned are in the middle of a poll. The guard and
//! all that is wrapped for it share [`Parts`]. A wrapper enters them for its polls, so that what is
//! wrapped inside shares them, too. `polls.rs` says which polls count.
//!
//! A query of a text has a stack of its own (`limits.rs` says how large): a wrapper polls and drops
//! what is in it there.

use std::cell::RefCell;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use futures::Stream;

use crate::polls::Polls;

thread_local! {
    /// Of the query whose part this thread polls.
    static CURRENT: RefCell<Option<Arc<Parts>>> = const { RefCell::new(None) };
}

static OF_ENDED: AtomicIsize = AtomicIsize::new(0);

/// Returns how many threads compute now for a query that has ended, because an operator or a
/// function of the query does not yield: a gauge of the process, over all lanes.
///
/// Such a thread is in the middle of a poll of one of the query's tasks. The lane cannot stop it,
/// and other jobs wait for it meanwhile. [`EnsureYields`](crate::EnsureYields) says what it cannot
/// divide.
///
/// # Examples
///
/// ```
/// assert_eq!(twolane_datafusion::threads_of_ended_queries(), 0);
/// ```
pub fn threads_of_ended_queries() -> usize {
    // Below zero: a poll has ended before the end of its query has added it.
    OF_ENDED.load(Relaxed).max(0) as usize
}

#[derive(Default)]
struct Parts {
    polls: Polls,
    /// The bytes of stack that a poll or drop of a part needs, or 0: what the thread has will do.
    stack: AtomicUsize,
}

/// Has the parts of the query that calls this need so many bytes of stack from now on.
#[cfg(feature = "sql")]
pub(crate) fn need_stack(bytes: usize) {
    CURRENT.with_borrow(|parts| {
        let parts = parts.as_ref().expect("called in a part");
        parts.stack.store(bytes, Relaxed);
    });
}

/// The caller's side of a query. Its drop is the end of the query.
pub(crate) struct QueryGuard(Arc<Parts>);

impl QueryGuard {
    /// Of a query whose parts need so many bytes of stack, or 0.
    pub(crate) fn new(stack: usize) -> Self {
        let query = Self(Arc::default());
        query.0.stack.store(stack, Relaxed);
        query
    }

    /// Makes a future, a stream or a value a part of the query.
    pub(crate) fn wrap<F>(&self, inner: F) -> InQuery<F> {
        InQuery {
            parts: Some(self.0.clone()),
            inner: Some(inner),
        }
    }
}

impl Drop for QueryGuard {
    fn drop(&mut self) {
        let polls = self.0.polls.end_job() as isize;
        OF_ENDED.fetch_add(polls, Relaxed);
    }
}

/// Makes a future or a stream a part of the query that calls this, if one does.
pub(crate) fn in_query<F>(inner: F) -> InQuery<F> {
    // An error: a destructor calls this while its thread ends.
    let parts = CURRENT.try_with(|current| current.borrow().clone());
    InQuery {
        parts: parts.unwrap_or_default(),
        inner: Some(inner),
    }
}

pub(crate) struct InQuery<F> {
    parts: Option<Arc<Parts>>,
    /// `None` once it was taken out.
    inner: Option<F>,
}

impl<F> InQuery<F> {
    /// Makes it a part of no query.
    #[cfg(feature = "sql")]
    pub(crate) fn into_inner(mut self) -> F {
        self.inner.take().expect("taken once")
    }

    /// Calls `f` as a part of the query, with the stack that one needs.
    fn enter<T>(&mut self, f: impl FnOnce(&mut Option<F>) -> T) -> T {
        let entered = self.parts.as_ref().and_then(Entered::new);
        let stack = entered.as_ref().map(|it| it.parts.stack.load(Relaxed));
        match stack {
            // None: this thread is in a part, and so on its stack, already.
            None | Some(0) => f(&mut self.inner),
            Some(bytes) => stacker::maybe_grow(bytes, bytes, || f(&mut self.inner)),
        }
    }
}

impl<F> Drop for InQuery<F> {
    fn drop(&mut self) {
        if self.inner.is_some() {
            self.enter(|inner| drop(inner.take()));
        }
    }
}

/// A poll of a part, until its drop.
struct Entered<'a> {
    parts: &'a Parts,
    before: Option<Arc<Parts>>,
}

impl<'a> Entered<'a> {
    /// `None`: this thread polls another part of the same query already, or it ends.
    fn new(parts: &'a Arc<Parts>) -> Option<Self> {
        let before = CURRENT.try_with(|current| {
            let mut current = current.borrow_mut();
            let is_in = current.as_ref().is_some_and(|it| Arc::ptr_eq(it, parts));
            (!is_in).then(|| current.replace(parts.clone()))
        });
        let before = before.ok().flatten()?;
        if parts.polls.begin() {
            OF_ENDED.fetch_add(1, Relaxed);
        }
        Some(Self { parts, before })
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if self.parts.polls.end() {
            OF_ENDED.fetch_sub(1, Relaxed);
        }
        let before = self.before.take();
        // What was there is dropped outside of the borrow.
        let _ = CURRENT.try_with(|current| mem::replace(&mut *current.borrow_mut(), before));
    }
}

impl<F: Future + Unpin> Future for InQuery<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let poll = |inner: &mut Option<F>| Some(Pin::new(inner.as_mut()?).poll(cx));
        self.get_mut().enter(poll).expect("it is not taken out yet")
    }
}

impl<S: Stream + Unpin> Stream for InQuery<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let poll = |inner: &mut Option<S>| Some(Pin::new(inner.as_mut()?).poll_next(cx));
        self.get_mut().enter(poll).expect("it is not taken out yet")
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
    use std::time::Duration;

    use futures::executor::block_on;
    use tokio::runtime::Runtime;
    use twolane_core::{CpuRuntime, yield_now};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn lane() -> (CpuRuntime, Runtime) {
        let io = Runtime::new().unwrap();
        let lane = CpuRuntime::builder().io_handle(io.handle().clone());
        (lane.worker_threads(1).build().unwrap(), io)
    }

    /// The gauge is the process's.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    fn one_at_a_time() -> MutexGuard<'static, ()> {
        ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the gauge says in the middle of its poll.
    fn count() -> impl Future<Output = usize> + Unpin {
        poll_fn(|_| Poll::Ready(threads_of_ended_queries()))
    }

    #[test]
    fn a_thread_in_parts_of_an_ended_query_counts_once() {
        let _alone = one_at_a_time();
        let (query, other) = (QueryGuard::new(0), QueryGuard::new(0));
        let outside = in_query(count());
        let made = query.wrap(poll_fn(|cx| {
            let nested = in_query(in_query(count()));
            let of_both = other.wrap(in_query(count()));
            // What is polled in between belongs to another query.
            let mut between = other.wrap(count());
            assert!(Pin::new(&mut between).poll(cx).is_ready());
            let after = || in_query(count());
            Poll::Ready((nested, of_both, after(), after()))
        }));
        let (nested, of_both, after, running) = block_on(made);
        assert_eq!(block_on(running), 0, "it has not ended");
        drop(query);
        assert_eq!(block_on(nested), 1);
        assert_eq!(block_on(after), 1);
        assert_eq!(block_on(outside), 0, "a part of no query");
        drop(other);
        assert_eq!(block_on(of_both), 2, "one of each query");
        assert_eq!(block_on(count()), 0);
    }

    /// A part of a query that has ended: in a poll at that end, and in a later poll.
    #[test]
    fn threads_that_compute_for_an_ended_query_are_counted() {
        let _alone = one_at_a_time();
        let (lane, _io) = lane();
        let cpu = lane.handle().clone();
        let (let_go, wait) = mpsc::channel::<()>();
        let (begins, began) = mpsc::channel();
        let query = QueryGuard::new(0);
        let part = async move {
            for _ in 0..2 {
                begins.send(()).unwrap();
                wait.recv_timeout(LIMIT).unwrap();
                yield_now().await;
            }
        };
        // Made in a part: what it spawns is one as well.
        let mut spawned = None;
        // Twice: its thread counts once.
        let part = Box::pin(async { in_query(Box::pin(part)).await });
        let spawns = Box::pin(async { spawned = Some(cpu.spawn(in_query(part))) });
        block_on(query.wrap(spawns));
        let part = spawned.unwrap();
        began.recv_timeout(LIMIT).unwrap();
        assert_eq!(threads_of_ended_queries(), 0);
        drop(query);
        assert_eq!(threads_of_ended_queries(), 1);
        let_go.send(()).unwrap();
        began.recv_timeout(LIMIT).unwrap();
        assert_eq!(threads_of_ended_queries(), 1);
        let_go.send(()).unwrap();
        part.wait().unwrap();
        assert_eq!(threads_of_ended_queries(), 0);
    }
}
