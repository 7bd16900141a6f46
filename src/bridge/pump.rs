//! The writing end of a bridge at work: carries a stream's items over.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::buffer::{LostReason, Room, Writer};
use crate::error::JoinError;
use crate::panics;

/// A stream that is always ready, with a reader that keeps up, would hold the
/// lane for ever; after so many items the pump lets others have a turn.
const ITEMS_A_POLL: usize = 32;

pin_project! {
    /// Carries a stream's items over a bridge.
    pub(crate) struct Pump<S: Stream, W> {
        #[pin]
        stream: S,
        weigh: W,
        writer: Option<Writer<S::Item>>,
    }
}

impl<S: Stream, W> Pump<S, W> {
    pub(crate) fn new(stream: S, weigh: W, writer: Writer<S::Item>) -> Self {
        Self {
            stream,
            weigh,
            writer: Some(writer),
        }
    }

    /// Tells the reader that no lane will run this.
    pub(crate) fn refuse(mut self, reason: &JoinError) {
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
                next.map(|item| item.map(|item| ((this.weigh)(&item), item)))
            });
            match next {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(Some((niceness, item)))) => writer.send(item, niceness),
                Ok(Poll::Ready(None)) => {
                    if let Some(writer) = this.writer.take() {
                        writer.complete();
                    }
                }
                Err(payload) => {
                    writer.lose(LostReason::Panicked(payload.text().into()));
                    *this.writer = None;
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
