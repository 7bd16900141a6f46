//! [`Pump`]: the task at the writing end of a bridge. It moves the items of a stream
//! into the buffer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::buffer::{Room, Writer};
use super::error::LostReason;
use crate::error::JoinError;
use crate::lane::Level;
use crate::panics;

/// The pump yields after so many items. Otherwise a stream that is always ready, with a
/// reader that keeps up, would never give the thread back to its lane.
const ITEMS_A_POLL: usize = 32;

pin_project! {
    /// Moves a stream's items over a bridge.
    pub(crate) struct Pump<S: Stream, W> {
        #[pin]
        stream: S,
        size: W,
        writer: Option<Writer<S::Item>>,
        // The CPU lane, if the stream is polled there.
        on_cpu: Option<Level>,
    }
}

impl<S: Stream, W> Pump<S, W> {
    pub(crate) fn new(stream: S, size: W, writer: Writer<S::Item>) -> Self {
        Self {
            stream,
            size,
            writer: Some(writer),
            on_cpu: None,
        }
    }

    /// The same for a stream that is polled on the CPU lane.
    pub(super) fn on_cpu(self, level: &Level) -> Self {
        Self {
            on_cpu: Some(level.clone()),
            ..self
        }
    }

    /// Ends the bridge with an error: no lane will run this pump.
    pub(crate) fn refuse(mut self, reason: JoinError) {
        if let Some(writer) = self.writer.take() {
            writer.refuse(reason);
        }
    }
}

impl<S, W> Future for Pump<S, W>
where
    S: Stream,
    W: Fn(&S::Item) -> usize,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        for _ in 0..ITEMS_A_POLL {
            let Some(writer) = this.writer.as_mut() else {
                return Poll::Ready(());
            };
            match writer.poll_room(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Room::ReaderGone) => return Poll::Ready(()),
                Poll::Ready(Room::Yes) => {}
            }
            let next = panics::catch(|| {
                let next = this.stream.as_mut().poll_next(cx);
                next.map(|item| item.map(|item| ((this.size)(&item), item)))
            });
            match next {
                Ok(Poll::Pending) => return Poll::Pending,
                // A lane that is closed drops its jobs and tasks. A stream that reads from
                // them may then fail, or end like a complete one. The lane drops this pump
                // as well, and the drop of the writer tells the reader.
                _ if is_closed(this.on_cpu) => return Poll::Pending,
                Ok(Poll::Ready(Some((size, item)))) => writer.send(item, size),
                Ok(Poll::Ready(None)) => {
                    if let Some(writer) = this.writer.take() {
                        writer.complete();
                    }
                }
                Err(payload) => {
                    writer.lose(LostReason::of_unwinding(payload));
                    *this.writer = None;
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

fn is_closed(on_cpu: &Option<Level>) -> bool {
    on_cpu
        .as_ref()
        .is_some_and(|level| level.lane().is_closed())
}
