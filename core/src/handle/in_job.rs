//! [`JobGuard`] and [`InJob`]: counts the threads that compute for a job that has ended.
//!
//! A guard and all that is wrapped for it share [`Parts`]. A wrapper enters them for its polls, so
//! that what is wrapped inside shares them, too. `polls.rs` says which polls count.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::Handle;
use super::polls::Polls;
use crate::guard::on_drop;
use crate::lane::Level;
use crate::sync::Ordering::Relaxed;

thread_local! {
    static CURRENT: RefCell<Option<Arc<Parts>>> = const { RefCell::new(None) };
}

/// Returns `None` while the thread ends: a destructor may still call this then.
fn with_current<R>(f: impl FnOnce(&mut Option<Arc<Parts>>) -> R) -> Option<R> {
    CURRENT
        .try_with(|current| f(&mut current.borrow_mut()))
        .ok()
}

struct Parts {
    level: Level,
    polls: Polls,
}

impl Parts {
    fn are_entered(self: &Arc<Self>) -> bool {
        let are_same = |current: &Arc<Self>| Arc::ptr_eq(current, self);
        with_current(|current| current.as_ref().is_some_and(are_same)).unwrap_or(false)
    }

    fn poll<R>(self: &Arc<Self>, poll: impl FnOnce() -> R) -> R {
        let count = self.level.threads_of_ended_jobs();
        if self.polls.begin() {
            count.fetch_add(1, Relaxed);
        }
        let mut before = with_current(|current| current.replace(self.clone())).flatten();
        let _end = on_drop(|| {
            // Dropped outside of the borrow: it may be the last reference to its lane.
            drop(with_current(|current| mem::replace(current, before.take())));
            if self.polls.end() {
                count.fetch_sub(1, Relaxed);
            }
        });
        poll()
    }
}

/// The caller's side of a job that spawns tasks: dropping it is the end of the job.
///
/// A job can be dropped while tasks that it has spawned are in the middle of a poll. They compute
/// on, and no counter of jobs shows it. If the job and its tasks are wrapped, their threads are in
/// [`Metrics::threads_of_ended_jobs`](crate::Metrics::threads_of_ended_jobs), from the drop of the
/// guard on.
///
/// For libraries that see each future that an engine spawns, as `twolane-datafusion` does. It
/// works with each [`Backend`](crate::Backend).
///
/// # Cost
///
/// An allocation. For each poll of what it wraps four atomic operations on words that all of them
/// share.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use std::sync::mpsc;
/// use twolane::{Backend, CpuRuntime, JobGuard, in_cpu_context, in_job};
///
/// let cpu = CpuRuntime::builder().backend(Backend::Runtime).build().unwrap();
/// let (began, has_begun) = tokio::sync::oneshot::channel();
/// let (let_go, wait) = mpsc::channel::<()>();
/// let query = async move {
///     let part = in_job(async move {
///         began.send(()).unwrap();
///         wait.recv() // computes, and does not yield
///     });
///     tokio::spawn(part).await
/// };
/// let job = JobGuard::new(&cpu.handle());
/// let query = cpu.spawn(in_cpu_context(job.wrap(query)));
/// has_begun.await.unwrap();
/// assert_eq!(cpu.handle().metrics().threads_of_ended_jobs, 0);
/// drop((query, job));
/// assert_eq!(cpu.handle().metrics().threads_of_ended_jobs, 1);
/// let_go.send(()).unwrap();
/// # while cpu.handle().metrics().threads_of_ended_jobs > 0 { tokio::task::yield_now().await; }
/// # }
/// ```
#[must_use = "its drop is the end of the job"]
pub struct JobGuard(Arc<Parts>);

impl JobGuard {
    /// Makes a guard for a job at the handle's lane and priority.
    ///
    /// # Examples
    ///
    /// See [`JobGuard`].
    pub fn new(handle: &Handle) -> Self {
        Self(Arc::new(Parts {
            level: handle.level().clone(),
            polls: Polls::default(),
        }))
    }

    /// Makes a future or a stream a part of the job.
    ///
    /// # Examples
    ///
    /// See [`JobGuard`].
    pub fn wrap<F>(&self, inner: F) -> InJob<F> {
        let parts = Some(self.0.clone());
        InJob { parts, inner }
    }
}

impl Drop for JobGuard {
    fn drop(&mut self) {
        let count = self.0.level.threads_of_ended_jobs();
        count.fetch_add(self.0.polls.end_job(), Relaxed);
    }
}

/// Makes a future or stream a part of the job that calls this: the one in which it is polled by a
/// [`JobGuard::wrap`], or by another such part. Elsewhere it changes nothing.
///
/// # Examples
///
/// See [`JobGuard`].
pub fn in_job<F>(inner: F) -> InJob<F> {
    let parts = with_current(|current| current.clone()).flatten();
    InJob { parts, inner }
}

pin_project! {
    /// A future or stream that is a part of a job.
    ///
    /// Returned by [`in_job`] and [`JobGuard::wrap`].
    #[must_use = "futures and streams do nothing unless polled"]
    pub struct InJob<F> {
        parts: Option<Arc<Parts>>,
        #[pin]
        inner: F,
    }
}

fn enter<R>(parts: &Option<Arc<Parts>>, poll: impl FnOnce() -> R) -> R {
    match parts {
        Some(parts) if !parts.are_entered() => parts.poll(poll),
        // Inside another part of the same job, its thread is counted already.
        _ => poll(),
    }
}

impl<F: Future> Future for InJob<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        enter(this.parts, || this.inner.poll(cx))
    }
}

impl<S: Stream> Stream for InJob<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        enter(this.parts, || this.inner.poll_next(cx))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

debug_by_name!(InJob<F>);

impl fmt::Debug for JobGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobGuard").finish_non_exhaustive()
    }
}
