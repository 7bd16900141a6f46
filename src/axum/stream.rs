//! [`body_from_cpu`]: an answer whose body the lane computes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum_core::body::Body;
use bytes::Bytes;
use futures_core::Stream;
use twolane_core::Permit;
use twolane_core::io::Bridged;

/// How many bytes of a body may wait for its reader.
const WINDOW: usize = 256 << 10;

/// Makes the body of an answer of a stream that computes its chunks.
///
/// The CPU lane polls the stream, as by [`Permit::stream_from_cpu`] with a window of 256 KiB. The
/// permit comes before the answer begins, so a lane that is full is a 503, and not a 200 that is
/// cut short. If the stream or the lane fails later, the body ends with the error, and the client
/// sees that it is not complete. If the client goes, the stream is dropped.
///
/// Chunks of 64 KiB are a good size: each is handed from one lane to the other.
///
/// # Examples
///
/// ```
/// use axum::body::{Body, Bytes};
/// use twolane::axum::{Reserved, body_from_cpu};
///
/// async fn rows(Reserved(permit): Reserved) -> Body {
///     let rows = (0..1_000_u32).map(|n| Ok(Bytes::from(format!("{n},{}\n", n * n))));
///     body_from_cpu(permit, futures::stream::iter(rows))
/// }
/// ```
#[track_caller]
pub fn body_from_cpu<S>(permit: Permit, stream: S) -> Body
where
    S: Stream<Item = io::Result<Bytes>> + Send + 'static,
{
    let size = |chunk: &io::Result<Bytes>| chunk.as_ref().map_or(0, Bytes::len);
    Body::from_stream(Chunks(permit.stream_from_cpu(stream, WINDOW, size)))
}

/// With one error for both kinds.
struct Chunks(Bridged<io::Result<Bytes>>);

impl Stream for Chunks {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let chunk = ready!(Pin::new(&mut self.0).poll_next(cx));
        Poll::Ready(chunk.map(|chunk| chunk.unwrap_or_else(|lost| Err(io::Error::other(lost)))))
    }
}
