//! [`CpuStreamExt`] and [`CpuIteratorExt`]: from a source to its stages.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use twolane_core::Handle;

use super::on_cpu::OnCpu;
use super::pump::SourceLane;
use super::stage::Unchanged;

/// Runs the items of any [`Stream`] on the CPU lane.
///
/// It is what `futures::StreamExt::buffered` over `spawn_blocking` is meant to be: the
/// items run on all threads of the lane, small ones travel together, and the source is
/// read while the consumer is busy.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use futures::StreamExt;
/// use twolane::CpuStreamExt;
///
/// const WINDOW: usize = 64;
/// # let pages = || futures::stream::iter(["<a>", "<b>"]);
/// # fn decode(page: &str) -> usize { page.len() }
/// # async fn write(_: usize) {}
/// // Before:
/// let mut rows = pages()
///     .map(|page| tokio::task::spawn_blocking(move || decode(page)))
///     .buffered(8);
/// while let Some(row) = rows.next().await {
///     write(row.unwrap()).await;
/// }
/// // After:
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let mut rows = pages()
///     .on_cpu(cpu.handle())
///     .map(decode)
///     .buffered(WINDOW);
/// while let Some(row) = rows.next().await {
///     write(row.unwrap()).await;
/// }
/// # }
/// ```
pub trait CpuStreamExt: Stream + Sized {
    /// Sends the items to the CPU lane of `handle`, where the stages run that are added to
    /// the returned [`OnCpu`].
    ///
    /// The stream itself is polled, and dropped, by a task of the I/O lane, so it must not block or
    /// compute (see [`OnCpu::source_on_cpu`]). The priority of the handle and the current span are
    /// those of all stages. A worker is one job of the lane: the counters of
    /// [`Metrics`](crate::metrics::Metrics) count it once, whatever it runs. There are at most as
    /// many workers as the lane has threads, and as many inputs as the window allows. They need no
    /// permit of a [limited queue](crate::Builder::queue_limit).
    ///
    /// # Errors
    ///
    /// None here; see [`Buffered`](crate::stream::Buffered).
    ///
    /// # Examples
    ///
    /// See [`CpuStreamExt`].
    fn on_cpu(self, handle: &Handle) -> OnCpu<Self, Unchanged>
    where
        Self::Item: 'static,
    {
        OnCpu::new(handle, self, SourceLane::Io)
    }
}

impl<S: Stream> CpuStreamExt for S {}

/// Runs the items of any [`Iterator`] on the CPU lane.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use futures::TryStreamExt;
/// use twolane::CpuIteratorExt;
///
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let words = "to be or not".split(' ').on_cpu(cpu.handle()).map(str::len);
/// let words = words.buffered(64);
/// assert_eq!(words.try_collect::<Vec<_>>().await.unwrap(), [2, 2, 2, 3]);
/// # }
/// ```
pub trait CpuIteratorExt: Iterator + Sized {
    /// Sends the items to the CPU lane of `handle`, where the stages run that are added to
    /// the returned [`OnCpu`].
    ///
    /// A job of the CPU lane calls the iterator: one at a time. So let the iterator give
    /// keys or blocks, and compute in a stage, which runs on all threads. The job needs no
    /// permit of a limited queue. An iterator that blocks belongs in `spawn_blocking`, with
    /// a channel as the source.
    ///
    /// # Errors
    ///
    /// None here; see [`Buffered`](crate::stream::Buffered).
    ///
    /// # Examples
    ///
    /// See [`CpuIteratorExt`].
    fn on_cpu(self, handle: &Handle) -> OnCpu<Iter<Self>, Unchanged>
    where
        Self::Item: 'static,
    {
        OnCpu::new(handle, Iter(self), SourceLane::Cpu)
    }
}

impl<I: Iterator> CpuIteratorExt for I {}

/// An iterator as the source of an [`OnCpu`].
#[derive(Debug)]
pub struct Iter<I>(I);

// The iterator is not pinned.
impl<I> Unpin for Iter<I> {}

impl<I: Iterator> Stream for Iter<I> {
    type Item = I::Item;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I::Item>> {
        Poll::Ready(self.0.next())
    }
}
