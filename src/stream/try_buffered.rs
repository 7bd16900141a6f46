//! [`TryBuffered`]: the consumer's end of a stream whose stages can fail.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::{FusedStream, Stream};

use super::buffered::Buffered;
use twolane_core::JoinError;

/// The outputs of a stream whose stages can fail: the first error is the last item.
///
/// Returned by [`OnCpu::try_buffered`](crate::OnCpu::try_buffered) and
/// [`OnCpu::try_buffer_unordered`](crate::OnCpu::try_buffer_unordered). What holds of
/// [`Buffered`] holds of it. Its errors are those of the stages; the [`JoinError`] of a
/// panic or a lane that has ended is turned into one by `E::from`.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use futures::TryStreamExt;
/// use std::num::NonZeroUsize;
/// use twolane::{CpuIteratorExt, TryBuffered};
///
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let numbers = ["1", "two"].into_iter().on_cpu(&cpu);
/// let numbers = numbers.map(|text| text.parse::<i32>().map_err(Box::from));
/// let mut numbers: TryBuffered<i32, Box<dyn std::error::Error + Send + Sync>> =
///     numbers.try_buffered(NonZeroUsize::new(64).unwrap());
/// assert_eq!(numbers.try_next().await.unwrap(), Some(1));
/// assert_eq!(numbers.try_next().await.unwrap_err().to_string(), "invalid digit found in string");
/// # }
/// ```
#[must_use = "dropping the stream cancels it: read its items"]
pub struct TryBuffered<T, E>(pub(super) Buffered<Result<T, E>>);

impl<T, E: From<JoinError>> Stream for TryBuffered<T, E> {
    type Item = Result<T, E>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(Pin::new(&mut self.get_mut().0).poll_next(cx));
        Poll::Ready(next.map(|result| result?))
    }
}

impl<T, E: From<JoinError>> FusedStream for TryBuffered<T, E> {
    fn is_terminated(&self) -> bool {
        self.0.is_terminated()
    }
}

impl<T, E> fmt::Debug for TryBuffered<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TryBuffered").field(&self.0).finish()
    }
}
