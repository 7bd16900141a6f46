//! HTTP bodies across the bridge.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf;
use futures_core::Stream;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::buffer::{BridgeError, Bridged, channel};
use super::pump::Pump;
use super::stream;
use crate::io_lane::this_runtime_is_closing;
use crate::lane::Level;

/// How many bytes of one body are read ahead if nothing else is asked for:
/// 2 MiB, a stream's window in hyper's HTTP/2 client, so that a body of that
/// size leaves the connection to others while its reader is busy.
///
/// ```
/// assert_eq!(twolane::DEFAULT_BODY_LIMIT, 2 * 1024 * 1024);
/// ```
pub const DEFAULT_BODY_LIMIT: usize = 2 * 1024 * 1024;

/// `Handle::body_from_io`.
pub(crate) fn from_io<B>(level: &Level, body: B, limit: usize) -> BridgedBody<B::Data, B::Error>
where
    B: Body + Send + 'static,
    B::Data: Send + 'static,
    B::Error: Send + 'static,
{
    let (bridged, pump) = bridge_body(body, limit);
    if let Some(pump) = pump {
        stream::pump_on_io(level, pump);
    }
    bridged
}

pub(crate) type BodyPump<B> = Pump<Frames<B>, fn(&FrameResult<B>) -> usize>;
type FrameResult<B> = Result<Frame<<B as Body>::Data>, <B as Body>::Error>;

type BridgeEnds<B> = (
    BridgedBody<<B as Body>::Data, <B as Body>::Error>,
    Option<BodyPump<B>>,
);

/// A body for the reader, and what has to run on the I/O lane for it (nothing,
/// if the body is known to be empty).
pub(crate) fn bridge_body<B: Body>(body: B, limit: usize) -> BridgeEnds<B> {
    let left = body.size_hint();
    if body.is_end_stream() {
        return (BridgedBody { frames: None, left }, None);
    }
    let (writer, reader) = channel(limit, "I/O", "bytes");
    let bridged = BridgedBody {
        frames: Some(reader),
        left,
    };
    let weigh: fn(&FrameResult<B>) -> usize = |frame| {
        frame
            .as_ref()
            .ok()
            .and_then(Frame::data_ref)
            .map_or(0, Buf::remaining)
    };
    let frames = Frames {
        body,
        failed: false,
    };
    (bridged, Some(Pump::new(frames, weigh, writer)))
}

pin_project! {
    /// A body as a stream of its frames.
    pub(crate) struct Frames<B> {
        #[pin]
        body: B,
        // A failed one may fail again at each poll: once is enough.
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
        // hyper's connection may have been dropped by a runtime that is going
        // away. The body then fails, as if the peer had gone, or even ends, as
        // if it were whole. This task is dropped next, and tells the cause.
        let is_doubtful = match &polled {
            Poll::Ready(Some(Err(_))) => true,
            // One of known length can't end too soon, and HTTP/2 has a flag for it.
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

/// A body that is read on the I/O lane; made by [`Handle::body_from_io`](crate::Handle::body_from_io).
pub struct BridgedBody<D, E> {
    // `None`: there was nothing to read.
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
        frames.poll_read(cx).map(|next| {
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
        self.frames.as_ref().is_none_or(Bridged::is_complete)
    }

    fn size_hint(&self) -> SizeHint {
        less(&self.left, 0)
    }
}

/// What is left of a hint after `read` bytes.
fn less(hint: &SizeHint, read: u64) -> SizeHint {
    let mut left = SizeHint::new();
    // Lower before upper: `set_upper` wants it not to be above.
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
/// ```
/// use twolane::BodyError;
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
    /// The I/O lane stopped in mid-body. Part of the body may have been read
    /// and used; whether asking again is safe is for the reader to know.
    Lost(BridgeError),
}

// The body's own error stands for itself: its text and its source, nothing in
// between. A lost body has its cause as the `source`.
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
