//! [`watch`]: a future whose polls the watch sees.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::name::Name;
use crate::scope;

/// Lets the watch see the polls of `future`.
///
/// If one takes longer than [`Watch::threshold`](crate::Watch::threshold), the report names
/// the place of this call (file and line), or the name that [`Watched::named`] gives.
///
/// A poll that calls `tokio::task::block_in_place` is reported as well, although it keeps no
/// worker meanwhile: the watch does not see that. Use `spawn_blocking`, or leave out
/// `watch`.
///
/// # Cost
///
/// Two readings of the clock for each poll, some 0.1 µs; a load while nothing is watched.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let handler = async { 6 * 7 };
/// let answer = stallwatch::watch(handler).named("GET /answer").await;
/// assert_eq!(answer, 42);
/// # }
/// ```
#[track_caller]
pub fn watch<F: Future>(future: F) -> Watched<F> {
    Watched {
        future,
        name: Name::caller(),
    }
}

pin_project! {
    /// The future that [`watch`] returns.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use stallwatch::{Watched, watch};
    ///
    /// fn report() -> Watched<impl Future<Output = u32>> {
    ///     watch(async { 6 * 7 }).named("report")
    /// }
    /// assert_eq!(report().await, 42);
    /// # }
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Watched<F> {
        #[pin]
        future: F,
        name: Name,
    }
}

impl<F> Watched<F> {
    #[cfg(feature = "tower")]
    pub(crate) fn at(future: F, name: Name) -> Self {
        Self { future, name }
    }

    /// Sets the name in reports: a route, a job's kind. At most some thousands of names are
    /// told apart in one process, so it holds no number of a request. One that is longer than
    /// 256 bytes is cut, and ends in `…`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use stallwatch::watch;
    ///
    /// let id = 4711;
    /// // The route, and not the path with the number.
    /// let answer = watch(async move { id }).named("GET /orders/{id}").await;
    /// assert_eq!(answer, 4711);
    /// # }
    /// ```
    pub fn named(mut self, name: &str) -> Self {
        self.name = Name::named(name);
        self
    }
}

impl<F: Future> Future for Watched<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _entered = scope::enter(*this.name);
        this.future.poll(cx)
    }
}
