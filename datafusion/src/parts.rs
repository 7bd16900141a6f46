//! [`QueryGuard`] and [`InQuery`]: which threads compute for a query that has ended.
//!
//! A query can be dropped while tasks that it has spawned are in the middle of a poll. The guard and
//! all that is wrapped for it share one counter of the threads that poll. A wrapper enters it for
//! its polls, so that what is wrapped inside shares it, too. The end of the guard hands the counter
//! to the lane, if parts are left.

use std::cell::RefCell;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use futures::Stream;
use twolane_core::Handle;

type Threads = Arc<AtomicUsize>;

thread_local! {
    /// Of the query whose part this thread polls.
    static CURRENT: RefCell<Option<Threads>> = const { RefCell::new(None) };
}

/// The caller's side of a query. Its drop is the end of the query.
pub(crate) struct QueryGuard {
    handle: Handle,
    threads: Threads,
}

impl QueryGuard {
    pub(crate) fn new(handle: &Handle) -> Self {
        Self {
            handle: handle.clone(),
            threads: Threads::default(),
        }
    }

    /// Makes a future or a stream a part of the query.
    pub(crate) fn wrap<F: Unpin>(&self, inner: F) -> InQuery<F> {
        let threads = Some(self.threads.clone());
        InQuery { threads, inner }
    }
}

impl Drop for QueryGuard {
    fn drop(&mut self) {
        // Without parts, no thread can poll one later.
        if Arc::strong_count(&self.threads) > 1 {
            self.handle.count_for_ended_job(&self.threads);
        }
    }
}

/// Makes a future or a stream a part of the query that calls this, if one does.
pub(crate) fn in_query<F: Unpin>(inner: F) -> InQuery<F> {
    // An error: a destructor calls this while its thread ends.
    let threads = CURRENT.try_with(|current| current.borrow().clone());
    InQuery {
        threads: threads.unwrap_or_default(),
        inner,
    }
}

pub(crate) struct InQuery<F> {
    threads: Option<Threads>,
    inner: F,
}

/// Counts this thread until its drop.
struct Entered<'a> {
    threads: &'a Threads,
    before: Option<Threads>,
}

impl<'a> Entered<'a> {
    /// `None`: the thread is counted already, by another part of the same query, or it ends.
    fn new(threads: &'a Threads) -> Option<Self> {
        let before = CURRENT.try_with(|current| {
            let mut current = current.borrow_mut();
            let is_in = current.as_ref().is_some_and(|it| Arc::ptr_eq(it, threads));
            (!is_in).then(|| current.replace(threads.clone()))
        });
        let before = before.ok().flatten()?;
        threads.fetch_add(1, Relaxed);
        Some(Self { threads, before })
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.threads.fetch_sub(1, Relaxed);
        let before = self.before.take();
        let _ = CURRENT.try_with(|current| mem::replace(&mut *current.borrow_mut(), before));
    }
}

impl<F: Future + Unpin> Future for InQuery<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        let _entered = this.threads.as_ref().and_then(Entered::new);
        Pin::new(&mut this.inner).poll(cx)
    }
}

impl<S: Stream + Unpin> Stream for InQuery<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.get_mut();
        let _entered = this.threads.as_ref().and_then(Entered::new);
        Pin::new(&mut this.inner).poll_next(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use futures::executor::block_on;
    use twolane_core::CpuRuntime;

    use super::*;

    /// A part whose poll reads the metrics.
    fn counts(cpu: &Handle) -> impl Future<Output = u64> + Unpin + use<> {
        let cpu = cpu.clone();
        poll_fn(move |_| Poll::Ready(cpu.metrics().threads_of_ended_jobs))
    }

    #[test]
    fn a_thread_in_a_part_of_an_ended_query_counts_once() {
        let io = tokio::runtime::Runtime::new().unwrap();
        let cpu = CpuRuntime::builder().io_handle(io.handle().clone());
        let cpu = cpu.worker_threads(1).build().unwrap().handle();
        let (query, other) = (QueryGuard::new(&cpu), QueryGuard::new(&cpu));
        let outside = in_query(counts(&cpu));
        let parts = query.wrap(poll_fn(|_| {
            let part = || in_query(in_query(counts(&cpu)));
            Poll::Ready((part(), part(), other.wrap(part())))
        }));
        let (running, part, of_both) = block_on(parts);
        assert_eq!(block_on(running), 0, "it has not ended");
        drop(query);
        assert_eq!(block_on(part), 1);
        assert_eq!(block_on(outside), 0, "a part of no query");
        assert_eq!(block_on(counts(&cpu)), 0);
        drop(other);
        assert_eq!(block_on(of_both), 2, "one of each query");
        assert_eq!(block_on(counts(&cpu)), 0);
    }
}
