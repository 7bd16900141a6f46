//! [`Buffered`]: the consumer's end of a stream on the CPU lane.

use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::vec;

use futures_core::{FusedStream, Stream};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::coop::{self, RestoreOnPending};

use super::shared::{Limits, Message, Piece};
use super::unread::{drop_each, report_unread};
use super::window::Window;
use twolane_core::{JoinError, Task};

/// One unit of Tokio's cooperative budget pays for so many items of one message; a task has 128
/// units between two yields. With a unit for each item, as Tokio's channels take, a task that
/// takes items of some nanoseconds would yield each microsecond, and a yield costs as much. A
/// message of fewer items costs a unit too: items that take the stages long come in such ones.
const ITEMS_A_UNIT: u32 = 32;

/// The outputs of a stream whose stages run on the CPU lane.
///
/// Returned by [`OnCpu::buffered`](crate::stream::OnCpu::buffered) and
/// [`OnCpu::buffer_unordered`](crate::stream::OnCpu::buffer_unordered). Any task can poll it, on
/// any runtime or none. (A plain thread: `futures::executor::block_on`. Not inside a job of
/// the same lane, which would wait for itself; there, give a future to
/// [`Handle::spawn`](crate::Handle::spawn).) The I/O runtime has to be driven, as for
/// [`Handle::spawn_io`](crate::Handle::spawn_io).
///
/// Dropping it cancels what is queued and drops the source on its own lane. An item that
/// runs at that moment runs to the end of its stages, or to its next output. Inputs and
/// states are dropped on the CPU lane, outputs where the stream is dropped. A worker that is
/// queued at that moment ends when its turn comes; the stages are dropped with the last one.
///
/// # Errors
///
/// The last item is an error, and the stream is over:
///
/// - [`JoinError::is_panic`]: a stage, the source, an `init` of `map_init` or a function of
///   `max_bytes` panicked. In order, all outputs of earlier inputs come first. The payload
///   is intact.
/// - [`JoinErrorKind::Expired`](crate::JoinErrorKind::Expired): the reader took nothing for the
///   [`reader_timeout`](crate::stream::OnCpu::reader_timeout). All that was made before comes first.
/// - [`JoinErrorKind::Shutdown`](crate::JoinErrorKind::Shutdown): the CPU lane was shut down, or
///   its `CpuRuntime` dropped.
/// - [`JoinErrorKind::IoRuntimeGone`](crate::JoinErrorKind::IoRuntimeGone): the I/O runtime was
///   shut down.
///
/// A stream that ends without an error is complete.
///
/// # Size
///
/// `size_hint` is `(0, None)`, whatever the source says: a stage may make any number of
/// outputs of an item, and an error may end the stream before the source ends.
///
/// # Cancel safety
///
/// `next()` on it is cancel safe: no item is lost.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use futures::StreamExt;
/// use twolane::CpuIteratorExt;
///
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let quotients = [2, 1, 0].into_iter().on_cpu(cpu.handle()).map(|n| 4 / n);
/// let mut quotients = quotients.buffered(64);
/// assert_eq!(quotients.next().await.unwrap().unwrap(), 2);
/// assert_eq!(quotients.next().await.unwrap().unwrap(), 4);
/// assert!(quotients.next().await.unwrap().unwrap_err().is_panic());
/// assert!(quotients.next().await.is_none());
/// # }
/// ```
#[must_use = "dropping the stream cancels it: read its items"]
pub struct Buffered<O> {
    messages: UnboundedReceiver<Message<O>>,
    /// Its drop drops the source.
    pump: Task<()>,
    window: Arc<Window>,
    /// Stops the workers.
    cancel: Box<dyn Fn() + Send + Sync>,
    in_order: bool,
    /// The piece that is being handed out.
    current: vec::IntoIter<O>,
    /// What the window gets back of it.
    current_size: (usize, usize),
    /// It has one output for each input.
    is_one_for_one: bool,
    /// What the window gets back soon.
    unreturned: (usize, usize),
    /// So many items are given back at once: each time may wake the pump.
    give_back_at: usize,
    /// What comes after it, as the last item.
    failure: Option<JoinError>,
    /// The pieces that have come, by the index of their first input.
    pieces: BTreeMap<u64, Piece<O>>,
    /// The index of the first input after the current piece.
    next: u64,
    /// How many inputs have arrived.
    arrived: u64,
    total: Option<u64>,
    /// A part of the stream was dropped. Inside: the error, if it is known.
    lost: Option<Option<JoinError>>,
    ended: bool,
    /// For the pump to see how much was taken, if there is a time for that.
    taken: Option<Arc<AtomicUsize>>,
    /// How many items the last unit of the task's budget still pays for.
    paid: u32,
}

impl<O> Buffered<O> {
    pub(super) fn new(
        messages: UnboundedReceiver<Message<O>>,
        pump: Task<()>,
        window: Arc<Window>,
        cancel: Box<dyn Fn() + Send + Sync>,
        limits: &Limits,
    ) -> Self {
        Self {
            messages,
            pump,
            window,
            cancel,
            in_order: limits.ordered,
            current: Vec::new().into_iter(),
            current_size: (0, 0),
            is_one_for_one: false,
            unreturned: (0, 0),
            give_back_at: (limits.items / 8).max(1),
            failure: None,
            pieces: BTreeMap::new(),
            next: 0,
            arrived: 0,
            total: None,
            lost: None,
            ended: false,
            taken: limits.reader.as_ref().map(|(_, taken)| taken.clone()),
            paid: 0,
        }
    }

    /// Why the rest of the stream will never come, if it will not.
    fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<JoinError> {
        match &mut self.lost {
            None => Poll::Pending,
            Some(error) => match error.take() {
                Some(error) => Poll::Ready(error),
                // On an open lane: its task has the error.
                None => Pin::new(&mut self.pump)
                    .poll(cx)
                    .map(|ended| ended.expect_err("a pump that was dropped has not ended")),
            },
        }
    }

    fn receive(&mut self, message: Message<O>) {
        match message {
            Message::Pieces(pieces) => {
                for mut piece in pieces {
                    if !self.in_order {
                        // The order in which they come.
                        piece.first = self.arrived;
                    }
                    if piece.inputs > 0 || piece.failure.is_some() {
                        self.arrived += piece.inputs.max(1) as u64;
                        self.pieces.insert(piece.first, piece);
                    }
                }
            }
            Message::End(total) => self.total = Some(total),
            Message::Lost(error) => {
                self.lost.get_or_insert(error);
            }
        }
    }

    fn start(&mut self, piece: Piece<O>) {
        self.next = piece.end();
        self.is_one_for_one = piece.is_one_for_one;
        self.current = piece.outputs.into_iter();
        self.current_size = (piece.inputs, piece.bytes);
        self.failure = piece.failure;
        if self.current.as_slice().is_empty() {
            self.end_of_piece();
        }
    }

    /// An output of the current piece was taken.
    fn taken(&mut self) {
        if let Some(taken) = &self.taken {
            taken.fetch_add(1, Relaxed);
        }
        if self.current.as_slice().is_empty() {
            self.end_of_piece();
        } else if self.is_one_for_one {
            self.current_size.0 -= 1;
            self.unreturned.0 += 1;
            if self.unreturned.0 >= self.give_back_at {
                self.give_back();
            }
        }
    }

    fn end_of_piece(&mut self) {
        let (items, bytes) = mem::take(&mut self.current_size);
        self.unreturned.0 += items;
        self.unreturned.1 += bytes;
        if bytes > 0 || self.unreturned.0 >= self.give_back_at {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        let (items, bytes) = mem::take(&mut self.unreturned);
        if items > 0 {
            self.window.give_back(items, bytes);
        }
    }

    /// No further item comes: whatever is under way stops now.
    fn end(&mut self) {
        self.ended = true;
        self.pump.abort();
        (self.cancel)();
    }

    /// Spends the unit, if one was due, on an item or a message.
    fn pay(&mut self, unit: Option<RestoreOnPending>) {
        if let Some(unit) = unit {
            unit.made_progress();
            self.paid = ITEMS_A_UNIT;
        }
        self.paid -= 1;
    }

    /// Returns the next item, if it has come.
    fn next_ready(&mut self) -> Option<Option<Result<O, JoinError>>> {
        loop {
            if let Some(output) = self.current.next() {
                self.taken();
                return Some(Some(Ok(output)));
            }
            if let Some(failure) = self.failure.take() {
                self.end();
                return Some(Some(Err(failure)));
            }
            if self.ended || self.total == Some(self.next) {
                self.ended = true;
                return Some(None);
            }
            let piece = self.pieces.remove(&self.next)?;
            self.start(piece);
        }
    }
}

impl<O> Stream for Buffered<O> {
    type Item = Result<O, JoinError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            // Its drop gives it back: a poll without an item costs nothing.
            let unit = match this.paid {
                0 => Some(ready!(coop::poll_proceed(cx))),
                _ => None,
            };
            if let Some(next) = this.next_ready() {
                this.pay(unit);
                return Poll::Ready(next);
            }
            // Unconstrained: this stream counts the items that it returns.
            let receive = poll_fn(|cx| this.messages.poll_recv(cx));
            // It never ends: this end of the stream holds a sender, too.
            if let Poll::Ready(Some(message)) = pin!(coop::unconstrained(receive)).poll(cx) {
                this.receive(message);
                // It may hold no output at all, and the next one is there.
                this.pay(unit);
                this.paid = 0;
            } else if let Poll::Ready(error) = this.poll_lost(cx) {
                this.failure = Some(error);
            } else {
                this.give_back();
                return Poll::Pending;
            }
        }
    }
}

impl<O> FusedStream for Buffered<O> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

// It is polled by `&mut` alone, and moves its outputs out.
impl<O> Unpin for Buffered<O> {}

impl<O> Drop for Buffered<O> {
    fn drop(&mut self) {
        // After the end nothing is under way.
        if !self.ended {
            self.end();
        }
        if let Some(failure) = self.failure.take() {
            report_unread(failure);
        }
        drop_each(
            "the destructor of a stream's output",
            mem::take(&mut self.current),
        );
        for piece in mem::take(&mut self.pieces).into_values() {
            piece.discard();
        }
        // What the workers send from now on, they get back.
        self.messages.close();
        while let Ok(message) = self.messages.try_recv() {
            message.discard();
        }
    }
}

impl<O> fmt::Debug for Buffered<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffered")
            .field("items", &self.window.items())
            .field("bytes", &self.window.bytes())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
