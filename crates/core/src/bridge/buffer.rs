//! The bridge: a stream that runs on one lane and is read on the other, through a
//! bounded buffer.
//!
//! There is one writer (the *pump*: a task on the lane where the stream belongs) and
//! one reader. The items cross by Tokio's unbounded `mpsc`, which has no locks. What bounds it is
//! the [`Window`]. (Tokio's semaphore would be a lock for each item, which a thread may hold while
//! it has no core.)
//!
//! - **Bound.** The pump reads while less than `limit` is buffered. So the buffer holds
//!   less than `limit` plus one item, whatever the reader does.
//! - **End.** A bridge ends in one of two ways: *complete*, if the stream itself ended,
//!   or *lost*, if the pump was dropped or panicked before. The writer of a lost one sends the
//!   reason behind the last item. The reader gets an end of stream for the first only. A lane that
//!   stops in the middle of a body is an error, never a short body that looks complete.
//! - **Batches.** An item wakes the reader, on a thread of the other lane, which costs what many a
//!   small chunk takes to compute. So the writer holds items back until they are half of the window,
//!   or the writer has held some for [`HELD_FOR`], waits, or ends. A stream whose items take longer
//!   hands over each. What is held counts in the window.
//! - **Wake-ups.** The reader changes `buffered`, or closes the channel, and then wakes the writer.
//!   The writer registers its waker and then looks at both. (Loom model in `tests/models`.)
//! - **Drop.** Dropping the reader wakes the pump, which drops the stream. So a
//!   download without a reader stops.
//!
//! **Obligations.** [safety] The reader gets the items in their order, each once, and behind the
//! last one what is true: the end, or the reason of the loss. [liveness] A writer that waits for
//! room is woken by the reader that makes some, or goes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::{FusedStream, Stream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::error::{BridgeError, LostReason};
use crate::pace::clock::now;
use crate::panics;
use crate::sync::{AtomicUsize, AtomicWaker, Ordering::SeqCst};

/// The largest size that an item can count for, and the largest limit.
const MAX_SIZE: usize = usize::MAX / 2;

/// In nanoseconds. Items are not held back for longer than that, and the time that one takes.
pub(crate) const HELD_FOR: u64 = 1_000_000;

/// An item and its size, or why there are no more.
type Message<T> = Result<(T, usize), Box<BridgeError>>;

struct Window {
    buffered: AtomicUsize,
    limit: usize,
    writer: AtomicWaker,
}

/// Makes both ends of a bridge that buffers up to `limit`. Its errors name the lane of the writer
/// as `lane`.
pub(crate) fn channel<T>(limit: usize, lane: &'static str) -> (Writer<T>, Bridged<T>) {
    let window = Arc::new(Window {
        buffered: AtomicUsize::new(0),
        // A limit of 0 counts as 1: one item at a time.
        limit: limit.clamp(1, MAX_SIZE),
        writer: AtomicWaker::new(),
    });
    let (sender, items) = unbounded_channel();
    let writer = Writer {
        items: Some(sender),
        window: window.clone(),
        held: (Vec::new(), 0),
        flushed: 0,
        if_lost: BridgeError {
            cause: LostReason::Stopped,
            lane,
            unit: "units of `size`",
            sent: 0,
        },
    };
    (writer, Bridged { items, window })
}

pub(crate) struct Writer<T> {
    /// `None` once the bridge has ended.
    items: Option<UnboundedSender<Message<T>>>,
    window: Arc<Window>,
    /// Items that were not handed over yet, and their size; and when others were, in nanoseconds.
    held: (Vec<(T, usize)>, usize),
    flushed: u64,
    /// What the reader gets if this is dropped now.
    pub(super) if_lost: BridgeError,
}

impl<T> Writer<T> {
    /// Waits until there is room. Returns false if the reader is gone.
    pub(crate) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        // Register even if there is room: the reader may be dropped while the stream
        // has no item.
        self.window.writer.register(cx.waker());
        if self.items.as_ref().is_none_or(UnboundedSender::is_closed) {
            Poll::Ready(false)
        } else if self.window.buffered.load(SeqCst) < self.window.limit {
            Poll::Ready(true)
        } else {
            self.flush();
            Poll::Pending
        }
    }

    /// Call [`flush`](Self::flush) before a wait.
    pub(crate) fn send(&mut self, item: T, size: usize) {
        self.if_lost.sent = self.if_lost.sent.saturating_add(size);
        // An item of size 0 (a trailer) counts as 1, so that it takes room as well. The
        // maximum keeps the sum from overflowing.
        let size = size.clamp(1, MAX_SIZE);
        self.window.buffered.fetch_add(size, SeqCst);
        self.held.0.push((item, size));
        self.held.1 += size;
        if self.held.1 >= self.window.limit / 2 || now() >= self.flushed + HELD_FOR {
            self.flush();
        }
    }

    /// Hands over what is held.
    pub(crate) fn flush(&mut self) {
        for item in self.held.0.drain(..) {
            // It fails if the reader is gone.
            let unsent = self.items.as_ref().map(|items| items.send(Ok(item)));
            panics::drop_quietly("an item of a stream", unsent);
        }
        (self.held.1, self.flushed) = (0, now());
    }

    /// The stream has ended, and no item is missing.
    pub(crate) fn complete(&mut self) {
        self.flush();
        self.items = None;
    }

    pub(crate) fn lose(&mut self, cause: LostReason) {
        self.flush();
        if let Some(items) = self.items.take() {
            let error = BridgeError {
                cause,
                ..self.if_lost.clone()
            };
            let _ = items.send(Err(Box::new(error)));
        }
    }
}

impl<T> Drop for Writer<T> {
    fn drop(&mut self) {
        self.lose(LostReason::Stopped);
    }
}

/// The reading end of a bridge: a [`Stream`] that any thread can poll.
///
/// Returned by [`Handle::stream_from_io`](crate::Handle::stream_from_io) and
/// [`Handle::stream_from_cpu`](crate::Handle::stream_from_cpu). Dropping it stops the
/// pump on the other lane, which drops the stream there.
///
/// Its items are `Result`s. If the pump stops before the stream ends, the last item is
/// a [`BridgeError`]. Only a stream that was read to its end ends without one.
pub struct Bridged<T> {
    items: UnboundedReceiver<Message<T>>,
    window: Arc<Window>,
}

impl<T> Bridged<T> {
    /// Returns how much is buffered: read on the other lane, and not yet here.
    ///
    /// The unit is that of `size`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let numbers = futures::stream::iter(1..=3);
    /// let bridged = cpu.handle().stream_from_io(numbers, 1024, |_| 4);
    /// assert!(bridged.read_ahead() <= 12);
    /// # }
    /// ```
    pub fn read_ahead(&self) -> usize {
        self.window.buffered.load(SeqCst)
    }
}

impl<T> Stream for Bridged<T> {
    type Item = Result<T, BridgeError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.items.poll_recv(cx));
        Poll::Ready(next.map(|message| {
            let (item, size) = message.map_err(|error| *error)?;
            let window = &self.window;
            let before = window.buffered.fetch_sub(size, SeqCst);
            if before >= window.limit && before - size < window.limit {
                // There is room again.
                window.writer.wake();
            }
            Ok(item)
        }))
    }
}

impl<T> FusedStream for Bridged<T> {
    fn is_terminated(&self) -> bool {
        self.items.is_closed() && self.items.is_empty()
    }
}

impl<T> Drop for Bridged<T> {
    fn drop(&mut self) {
        // The channel drops what is left at once: on a busy lane, the pump may not run for a while.
        self.items.close();
        self.window.writer.wake();
    }
}

debug_by_name!(Bridged<T>, buffered: Self::read_ahead, limit: |it: &Self| it.window.limit);
