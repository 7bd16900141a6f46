//! HTTP bodies across the bridge, from the I/O lane.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf;
use futures_core::{FusedStream, Stream};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::closing::this_runtime_is_closing;
use twolane_core::adapters;
use twolane_core::io::{BridgeError, Bridged, IoHandle};

/// How many bytes of one body are read ahead by default: 2 MiB.
///
/// This is the window of one stream in hyper's HTTP/2 client. So a body of up to that
/// size leaves the connection to others while its reader is busy.
///
/// # Examples
///
/// ```
/// assert_eq!(twolane::io::DEFAULT_BODY_LIMIT, 2 * 1024 * 1024);
/// ```
pub const DEFAULT_BODY_LIMIT: usize = 2 * 1024 * 1024;

type FrameResult<B> = Result<Frame<<B as Body>::Data>, <B as Body>::Error>;

/// Has the I/O lane read the body, ahead of its reader.
pub(crate) fn bridge_body<B>(io: &IoHandle, body: B, limit: usize) -> BridgedBody<B::Data, B::Error>
where
    B: Body + Send + 'static,
    B::Data: Send + 'static,
    B::Error: Send + 'static,
{
    let left = body.size_hint();
    if body.is_end_stream() {
        return BridgedBody { frames: None, left };
    }
    let size = |frame: &FrameResult<B>| {
        let data = frame.as_ref().ok().and_then(Frame::data_ref);
        data.map_or(0, Buf::remaining)
    };
    let (writer, reader) = io.bridge(limit, size);
    let failed = false;
    let frames = Frames { body, failed };
    adapters::detach_quietly(io.spawn(writer.unit("bytes").forward(frames)));
    BridgedBody {
        frames: Some(reader),
        left,
    }
}

pin_project! {
    /// A body as a stream of its frames.
    pub(crate) struct Frames<B> {
        #[pin]
        body: B,
        // A body that failed may fail again at each poll. The reader gets the first
        // error only.
        failed: bool,
    }
}

impl<B: Body> Stream for Frames<B> {
    type Item = FrameResult<B>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.project();
        if *this.failed {
            return Poll::Ready(None);
        }
        let mut body = this.body;
        let polled = body.as_mut().poll_frame(cx);
        // A runtime that shuts down may have dropped hyper's connection already. Then
        // the body fails like one whose peer is gone, or even ends like a complete one.
        // The runtime drops this task next, and that drop reports the cause.
        let is_doubtful = match &polled {
            Poll::Ready(Some(Err(_))) => true,
            // A body of known length cannot end too soon, and HTTP/2 has a flag for the
            // end. So only the other ends are in doubt.
            Poll::Ready(None) => !body.is_end_stream() && body.size_hint().exact() != Some(0),
            _ => false,
        };
        if is_doubtful && this_runtime_is_closing() {
            return Poll::Pending;
        }
        *this.failed = matches!(polled, Poll::Ready(Some(Err(_))));
        polled
    }
}

/// An HTTP body that is read on the I/O lane.
///
/// Returned by [`HandleExt::body_from_io`](crate::HandleExt::body_from_io), and the body of a
/// response from [`HandleExt::response_from_io`](crate::HandleExt::response_from_io). Its
/// errors are [`BodyError`]s. Dropping it stops the download.
pub struct BridgedBody<D, E> {
    // `None` if the body was known to be empty.
    frames: Option<Bridged<Result<Frame<D>, E>>>,
    left: SizeHint,
}

impl<D: Buf, E> Body for BridgedBody<D, E> {
    type Data = D;
    type Error = BodyError<E>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<D>, BodyError<E>>>> {
        let this = self.get_mut();
        let Some(frames) = &mut this.frames else {
            return Poll::Ready(None);
        };
        Pin::new(frames).poll_next(cx).map(|next| {
            next.map(|frame| {
                let frame = frame.map_err(BodyError::Lost)?.map_err(BodyError::Body)?;
                if let Some(data) = frame.data_ref() {
                    this.left = less(&this.left, data.remaining() as u64);
                }
                Ok(frame)
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.frames.as_ref().is_none_or(Bridged::is_terminated)
    }

    fn size_hint(&self) -> SizeHint {
        less(&self.left, 0)
    }
}

/// Returns what is left of a hint after `read` bytes.
fn less(hint: &SizeHint, read: u64) -> SizeHint {
    let mut left = SizeHint::new();
    // Lower before upper: `set_upper` panics if the lower bound is above it.
    left.set_lower(hint.lower().saturating_sub(read));
    if let Some(upper) = hint.upper() {
        left.set_upper(upper.saturating_sub(read));
    }
    left
}

impl<D, E> fmt::Debug for BridgedBody<D, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BridgedBody")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

/// Why a body could not be read to its end.
///
/// # Examples
///
/// ```
/// use twolane::io::BodyError;
/// fn is_ours(error: &BodyError<std::io::Error>) -> bool {
///     matches!(error, BodyError::Lost(_))
/// }
/// assert!(!is_ours(&BodyError::Body(std::io::Error::other("reset by peer"))));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum BodyError<E> {
    /// The body's own error.
    Body(E),
    /// The I/O lane stopped in the middle of the body.
    ///
    /// The reader may have read and used a part of it. Only the reader knows whether it
    /// is safe to ask again.
    Lost(BridgeError),
}

// `Body` is transparent: its text and its source are those of the inner error. `Lost`
// has the `BridgeError` as its source.
impl<E: fmt::Display> fmt::Display for BodyError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body(error) => error.fmt(f),
            Self::Lost(_) => f.write_str("the body was lost on its way from the I/O lane"),
        }
    }
}

impl<E: Error> Error for BodyError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Body(error) => error.source(),
            Self::Lost(error) => Some(error),
        }
    }
}
