//! The bridge: a stream that runs on one lane and is read on the other, through a
//! bounded buffer.
//!
//! There is one writer (the *pump*: a task on the lane where the stream belongs) and
//! one reader. There are no locks. Each side wakes the other only when the other side
//! sleeps.
//!
//! - **Bound.** The pump reads while less than `limit` is buffered. So the buffer holds
//!   less than `limit` plus one item, whatever the reader does.
//! - **End.** A bridge ends in one of two ways: *complete*, if the stream itself ended,
//!   or *lost*, if the pump was dropped or panicked before. The reader gets an end of
//!   stream for the first only. A lane that stops in the middle of a body is an error,
//!   never a short body that looks complete.
//! - **Wake-ups.** The writer pushes an item, or sets `end`, and then wakes the reader.
//!   The reader looks, registers its waker, and looks again. It reads `end` before it
//!   looks at the queue. What was pushed before the end is read before it: if `end` is
//!   set and the queue is empty, then no item is left. In the other direction, the
//!   reader changes `buffered`, or sets `reader_gone`, and then wakes the writer. The
//!   writer registers its waker and then looks. (Loom model in `tests/loom`.)
//! - **Drop.** Dropping the reader wakes the pump, which drops the stream. So a
//!   download without a reader stops.
//!
//! **Orderings.** All accesses are `SeqCst`. Each side changes one word and then reads
//! the other side's word. The `AtomicWaker`s in between give no ordering where no waker
//! is registered yet.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use futures_core::{FusedStream, Stream};
use tokio::task::coop;

use super::error::{BridgeError, LostReason};
use crate::error::JoinError;
use crate::metrics::held::Held;
use crate::sync::{AtomicBool, AtomicU8, AtomicUsize, AtomicWaker, Ordering::SeqCst, Queue};

const OPEN: u8 = 0;
const COMPLETE: u8 = 1;
const LOST: u8 = 2;

/// The largest size that an item can count for, and the largest limit.
const MAX_SIZE: usize = usize::MAX / 2;

struct Shared<T> {
    items: Queue<(T, usize)>,
    buffered: AtomicUsize,
    /// The sum over all bridges of the priority, for its metrics.
    held: Held,
    limit: usize,
    end: AtomicU8,
    lost: OnceLock<BridgeError>,
    reader_gone: AtomicBool,
    reader: AtomicWaker,
    writer: AtomicWaker,
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // An item that was pushed while the reader was dropped.
        let left = self.buffered.load(SeqCst);
        if left > 0 {
            self.held.subtract(left);
        }
    }
}

/// Makes both ends of a bridge that buffers up to `limit`, counted in `unit`, and adds
/// that to `held`. Its errors name the lane of the writer as `lane`.
pub(crate) fn channel<T>(
    held: Held,
    limit: usize,
    lane: &'static str,
    unit: &'static str,
) -> (Writer<T>, Bridged<T>) {
    let shared = Arc::new(Shared {
        items: Queue::new(),
        buffered: AtomicUsize::new(0),
        held,
        // A limit of 0 counts as 1: one item at a time.
        limit: limit.clamp(1, MAX_SIZE),
        end: AtomicU8::new(OPEN),
        lost: OnceLock::new(),
        reader_gone: AtomicBool::new(false),
        reader: AtomicWaker::new(),
        writer: AtomicWaker::new(),
    });
    let writer = Writer {
        shared: shared.clone(),
        lane,
        unit,
        sent: 0,
    };
    let reader = Bridged {
        shared,
        told_of_end: false,
    };
    (writer, reader)
}

/// What the writer finds when it looks for room.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Yes,
    ReaderGone,
}

pub(crate) struct Writer<T> {
    shared: Arc<Shared<T>>,
    lane: &'static str,
    unit: &'static str,
    sent: usize,
}

impl<T> Writer<T> {
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<Room> {
        // Register even if there is room: the reader may be dropped while the stream
        // has no item.
        self.shared.writer.register(cx.waker());
        if self.shared.reader_gone.load(SeqCst) {
            Poll::Ready(Room::ReaderGone)
        } else if self.shared.buffered.load(SeqCst) < self.shared.limit {
            Poll::Ready(Room::Yes)
        } else {
            Poll::Pending
        }
    }

    pub(crate) fn send(&mut self, item: T, size: usize) {
        self.sent = self.sent.saturating_add(size);
        // An item of size 0 (a trailer) counts as 1, so that it takes room as well. The
        // maximum keeps the sum from overflowing.
        let size = size.clamp(1, MAX_SIZE);
        self.shared.held.add(size);
        self.shared.buffered.fetch_add(size, SeqCst);
        self.shared.items.push((item, size));
        self.shared.reader.wake();
    }

    /// Ends the bridge before its start: the lane takes no pump, for that reason.
    pub(crate) fn refuse(self, reason: JoinError) {
        self.lose(LostReason::Refused(Arc::new(reason)));
    }

    pub(crate) fn set_unit(&mut self, unit: &'static str) {
        self.unit = unit;
    }

    /// The stream has ended, and no item is missing.
    pub(crate) fn complete(self) {
        self.shared.end.store(COMPLETE, SeqCst);
        // The drop wakes the reader.
    }

    pub(crate) fn lose(&self, cause: LostReason) {
        let error = BridgeError {
            cause,
            lane: self.lane,
            unit: self.unit,
            sent: self.sent,
        };
        if self.shared.lost.set(error).is_ok() {
            self.shared.end.store(LOST, SeqCst);
        }
    }
}

impl<T> Drop for Writer<T> {
    fn drop(&mut self) {
        if self.shared.end.load(SeqCst) == OPEN {
            self.lose(LostReason::Stopped);
        }
        self.shared.reader.wake();
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
    shared: Arc<Shared<T>>,
    told_of_end: bool,
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
        self.shared.buffered.load(SeqCst)
    }

    fn take(&self) -> Option<T> {
        let (item, size) = self.shared.items.pop()?;
        self.shared.held.subtract(size);
        let before = self.shared.buffered.fetch_sub(size, SeqCst);
        let limit = self.shared.limit;
        if before >= limit && before - size < limit {
            self.shared.writer.wake();
        }
        Some(item)
    }

    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<T, BridgeError>>> {
        let budget = ready!(coop::poll_proceed(cx));
        let mut next = self.look();
        if next.is_none() {
            self.shared.reader.register(cx.waker());
            next = self.look();
        }
        match next {
            Some(next) => {
                budget.made_progress();
                Poll::Ready(next)
            }
            None => Poll::Pending,
        }
    }

    fn look(&mut self) -> Option<Option<Result<T, BridgeError>>> {
        let end = self.shared.end.load(SeqCst);
        if let Some(item) = self.take() {
            return Some(Some(Ok(item)));
        }
        match end {
            OPEN => None,
            LOST if !self.told_of_end => {
                self.told_of_end = true;
                Some(self.shared.lost.get().cloned().map(Err))
            }
            _ => Some(None),
        }
    }
}

impl<T> Stream for Bridged<T> {
    type Item = Result<T, BridgeError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_read(cx)
    }
}

impl<T> FusedStream for Bridged<T> {
    fn is_terminated(&self) -> bool {
        match self.shared.end.load(SeqCst) {
            OPEN => false,
            COMPLETE => self.shared.items.is_empty(),
            _ => self.told_of_end,
        }
    }
}

impl<T> Drop for Bridged<T> {
    fn drop(&mut self) {
        self.shared.reader_gone.store(true, SeqCst);
        self.shared.writer.wake();
        // Free the buffer now: on a busy lane, the pump may not run for a while.
        while self.take().is_some() {}
    }
}

impl<T> fmt::Debug for Bridged<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridged")
            .field("buffered", &self.read_ahead())
            .field("limit", &self.shared.limit)
            .finish_non_exhaustive()
    }
}
