//! [`yield_if_due`] and [`yield_now`]: how a long future yields, at almost no cost when nothing is
//! due. `ticker.rs` has the clock of the slices.

use std::pin::Pin;
use std::task::{Context, Poll};

use super::worker;

/// Returns whether the slice of the job that runs on this thread is over, so that
/// [`yield_if_due`] would yield.
///
/// For a future that is written by hand, or a loop that puts its state away before it yields. It
/// costs as little as [`yield_if_due`]. Outside a CPU job it asks for the slices of this thread, as
/// `yield_if_due` does.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::builder().worker_threads(1).build().unwrap();
/// let sum = cpu.spawn(async {
///     let (mut sum, mut batch) = (0_u64, Vec::new());
///     for n in 0..1_000 {
///         batch.push(n);
///         if twolane::is_yield_due() || batch.len() == 100 {
///             sum += batch.drain(..).sum::<u64>();
///             twolane::yield_if_due().await;
///         }
///     }
///     sum
/// });
/// assert_eq!(sum.await.unwrap(), 499_500);
/// # }
/// ```
#[inline]
pub fn is_yield_due() -> bool {
    worker::is_slice_over()
}

/// Yields to the other jobs of the lane if this job's slice of 5 to 10 ms is over.
///
/// Otherwise it does nothing, at about the cost of one atomic load (see
/// `twolane::guide::cost`). Call it in the loop of a future on the CPU lane that
/// computes for a long time without waiting. A yield is also the point where such a
/// future observes its cancellation and a shutdown.
///
/// A job that yields goes behind all jobs that have not yielded, also behind those that
/// come later. So a small job waits for one slice, not for one slice of each long job.
/// After eight such jobs in a row, a job that has yielded gets its turn.
///
/// A closure cannot yield; see [`JobContext`](crate::JobContext). Outside a CPU job it
/// yields like [`tokio::task::yield_now`], once per slice. The clock of the slices runs
/// only in a process that has a lane.
///
/// # Cancel safety
///
/// This function is cancel safe: the future holds nothing.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::builder().worker_threads(1).build().unwrap();
/// let long = cpu.spawn(async {
///     let mut sum = 0_u64;
///     for n in 0..100_000 {
///         sum += n;
///         twolane::yield_if_due().await;
///     }
///     sum
/// });
/// assert_eq!(long.await.unwrap(), 4_999_950_000);
/// # }
/// ```
pub fn yield_if_due() -> Yield {
    Yield {
        only_if_due: true,
        yielded: false,
    }
}

/// Yields to the other jobs of the lane, whether or not a slice is over.
///
/// Use it in a future that has a good moment for it, such as between two batches.
/// [`yield_if_due`] is for inner loops, and describes the order of the jobs. Outside a
/// CPU job it yields like [`tokio::task::yield_now`].
///
/// # Cancel safety
///
/// This function is cancel safe: the future holds nothing.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::builder().worker_threads(1).build().unwrap();
/// let sum = cpu.spawn(async {
///     let mut sum = 0_u64;
///     for batch in [[1, 2], [3, 4]] {
///         sum += batch.iter().sum::<u64>();
///         twolane::yield_now().await;
///     }
///     sum
/// });
/// assert_eq!(sum.await.unwrap(), 10);
/// # }
/// ```
pub fn yield_now() -> Yield {
    Yield {
        only_if_due: false,
        yielded: false,
    }
}

/// A future that yields: returned by [`yield_if_due`] and [`yield_now`].
#[derive(Debug)]
#[must_use = "nothing yields unless this is awaited"]
pub struct Yield {
    only_if_due: bool,
    yielded: bool,
}

impl Future for Yield {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.yielded || (self.only_if_due && !is_yield_due()) {
            return Poll::Ready(());
        }
        self.yielded = true;
        worker::begin_slice();
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
