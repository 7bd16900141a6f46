//! [`BridgeWriter`]: the writing end of a bridge. [`Pump`]: its task, which moves the items of a
//! stream into the buffer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::buffer::{Bridged, Writer, channel};
use super::error::{CPU, LostReason};
use crate::error::JoinError;
use crate::lane::Submitter;
use crate::panics;
use crate::task::worker::cancel_job;

/// The pump yields after so many items. Otherwise a stream that is always ready, with a
/// reader that keeps up, would never give the thread back to its lane.
const ITEMS_A_POLL: usize = 32;

/// The writing end of a bridge, of [`IoHandle::bridge`](crate::io::IoHandle::bridge).
///
/// If it is dropped, or the future of [`forward`](Self::forward) is, its reader gets a
/// [`BridgeError`](crate::io::BridgeError).
#[must_use = "its reader gets an error if it is dropped"]
pub struct BridgeWriter<T, W> {
    writer: Writer<T>,
    size: W,
    /// The CPU lane, if the stream is polled there.
    on_cpu: Option<Submitter>,
}

impl<T, W: Fn(&T) -> usize> BridgeWriter<T, W> {
    /// `on_cpu`: the CPU lane, if the stream is polled there.
    pub(crate) fn new(on_cpu: Option<Submitter>, limit: usize, size: W) -> (Self, Bridged<T>) {
        let lane = if on_cpu.is_some() { CPU } else { "I/O" };
        let (writer, reader) = channel(limit, lane);
        let writer = Self {
            writer,
            size,
            on_cpu,
        };
        (writer, reader)
    }

    /// Names the unit of the sizes in the reader's error: `bytes`.
    pub fn unit(mut self, unit: &'static str) -> Self {
        self.writer.if_lost.unit = unit;
        self
    }

    /// Polls `stream` to its end, and hands its items to the reader while there is room.
    ///
    /// Ends early if the reader was dropped. A panic of the stream reaches the reader as a
    /// [`BridgeError`](crate::io::BridgeError), and goes no further.
    pub fn forward<S>(self, stream: S) -> impl Future<Output = ()> + use<S, T, W>
    where
        S: Stream<Item = T>,
    {
        Pump { stream, to: self }
    }

    /// Ends the bridge before its start: the lane takes no pump, for that reason.
    pub(crate) fn refuse(mut self, reason: JoinError) {
        self.writer.lose(LostReason::Refused(Arc::new(reason)));
    }
}

debug_by_name!(BridgeWriter<T, W>);

pin_project! {
    struct Pump<S: Stream, W> {
        #[pin]
        stream: S,
        to: BridgeWriter<S::Item, W>,
    }
}

impl<S: Stream, W: Fn(&S::Item) -> usize> Future for Pump<S, W> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let BridgeWriter { writer, size, .. } = this.to;
        for _ in 0..ITEMS_A_POLL {
            if !ready!(writer.poll_room(cx)) {
                if this.to.on_cpu.is_none() {
                    return Poll::Ready(());
                }
                // The job counts as cancelled.
                cancel_job();
                return Poll::Pending;
            }
            let next = panics::catch(|| {
                let next = this.stream.as_mut().poll_next(cx);
                next.map(|item| item.map(|item| (size(&item), item)))
            });
            let is_closed = |on_cpu: &Submitter| on_cpu.levels.lane.is_closed();
            match next {
                Ok(Poll::Pending) => {
                    writer.flush();
                    return Poll::Pending;
                }
                // A lane that is closed drops its jobs and tasks. A stream that reads from
                // them may then fail, or end like a complete one. The lane drops this pump
                // as well, and the drop of the writer tells the reader.
                _ if this.to.on_cpu.as_ref().is_some_and(is_closed) => return Poll::Pending,
                Ok(Poll::Ready(Some((size, item)))) => writer.send(item, size),
                Ok(Poll::Ready(None)) => {
                    writer.complete();
                    return Poll::Ready(());
                }
                Err(payload) => {
                    writer.lose(LostReason::of_unwinding(payload));
                    return Poll::Ready(());
                }
            }
        }
        writer.flush();
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
