//! What the pump, the workers and the consumer of one stream share, and what they send.

use std::iter;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst, fence};
use std::time::Duration;
use std::vec;

use crossbeam_queue::SegQueue;
use tokio::sync::mpsc::UnboundedSender;

use super::batch::Batch;
use super::pace::Pace;
use super::runner::{RunChunk, Stop};
use super::unread::{drop_each, report_unread};
use super::window::Window;
use super::workers::Workers;
use twolane_core::adapters::{self, run_hook};
use twolane_core::{Handle, JoinError};

/// Makes the state of a worker.
pub(super) type Make<I, O> = Box<dyn Fn() -> Box<dyn RunChunk<I, O>> + Send + Sync>;

pub(super) type Size<T> = Box<dyn Fn(&T) -> usize + Send + Sync>;

/// A size in bytes counts for this at most, so that no sum of them overflows.
pub(super) const MAX_SIZE: usize = usize::MAX >> 24;

/// Inputs that follow one another.
pub(super) struct Chunk<I> {
    /// The index of the first one in the source.
    pub(super) first: u64,
    pub(super) items: vec::IntoIter<I>,
    /// What the window counts for it.
    pub(super) bytes: usize,
}

impl<I> Drop for Chunk<I> {
    fn drop(&mut self) {
        let items = mem::take(&mut self.items);
        drop_each("the destructor of a stream's input", items);
    }
}

/// The outputs of inputs that follow one another.
pub(super) struct Piece<O> {
    pub(super) first: u64,
    pub(super) inputs: usize,
    pub(super) outputs: Vec<O>,
    pub(super) bytes: usize,
    /// Each input has made one output.
    pub(super) is_one_for_one: bool,
    /// A panic of the source or of a stage. It comes after the outputs and ends the stream.
    pub(super) failure: Option<JoinError>,
}

/// A piece reserves memory for so many bytes of outputs at most: stages may make fewer outputs
/// than there are inputs.
const RESERVED: usize = 1 << 16;

impl<O> Piece<O> {
    pub(super) fn new(first: u64, room: usize) -> Self {
        let room = room.min(RESERVED / size_of::<O>().max(1));
        Self {
            first,
            inputs: 0,
            outputs: Vec::with_capacity(room),
            bytes: 0,
            is_one_for_one: true,
            failure: None,
        }
    }

    pub(super) fn failed(first: u64, failure: JoinError) -> Self {
        Self {
            failure: Some(failure),
            ..Self::new(first, 0)
        }
    }

    /// Adds the outputs of the next inputs, and leaves an empty piece.
    pub(super) fn join(&mut self, next: &mut Self) {
        self.is_one_for_one &= next.is_one_for_one;
        self.inputs += mem::take(&mut next.inputs);
        self.outputs.append(&mut next.outputs);
        self.bytes = self.bytes.saturating_add(mem::take(&mut next.bytes));
        self.failure = next.failure.take();
    }

    pub(super) fn end(&self) -> u64 {
        self.first + self.inputs as u64
    }

    /// No consumer takes it: logs a panic in it.
    pub(super) fn discard(self) {
        if let Some(error) = self.failure {
            report_unread(error);
        }
        drop_each("the destructor of a stream's output", self.outputs);
    }
}

pub(super) enum Message<O> {
    Pieces(Vec<Piece<O>>),
    /// The source has ended after so many items.
    End(u64),
    /// A lane has dropped the pump or a worker: some outputs will never come. The error is that
    /// of the CPU lane, if that is closed; else that of the pump's task.
    Lost(Option<JoinError>),
}

impl<O> Message<O> {
    /// The stream was dropped before the consumer got this: logs a panic in it.
    pub(super) fn discard(self) {
        match self {
            Self::Pieces(pieces) => pieces.into_iter().for_each(Piece::discard),
            Self::Lost(_) | Self::End(_) => {}
        }
    }
}

/// With many workers a batch takes no longer than this, unless the user has set it so.
const LONGEST_BATCH: Duration = Duration::from_millis(4);

pub(super) struct Shared<I, O> {
    /// Inputs in the order of the source.
    chunks: SegQueue<Chunk<I>>,
    /// What a worker has put back, which is older than any of `chunks`.
    put_back: SegQueue<Chunk<I>>,
    pub(super) workers: Workers,
    pub(super) stop: Stop,
    pub(super) window: Arc<Window>,
    pub(super) pace: Pace,
    pub(super) batch: Duration,
    /// After so many inputs a worker hands over its outputs.
    pub(super) most_in_batch: usize,
    make: Make<I, O>,
    pub(super) output_size: Option<Size<O>>,
    idle_seats: SegQueue<Seat<I, O>>,
    messages: UnboundedSender<Message<O>>,
}

/// What a worker needs for a batch, and leaves to the next one.
pub(super) struct Seat<I, O> {
    pub(super) runner: Box<dyn RunChunk<I, O>>,
    pub(super) batch: Arc<Batch<O>>,
}

/// The limits of a stream, as its pump and its workers see them.
pub(super) struct Limits {
    pub(super) workers: usize,
    pub(super) ordered: bool,
    pub(super) items: usize,
    pub(super) bytes: usize,
    pub(super) batch: Duration,
    pub(super) reader: Option<ReaderTimeout>,
}

/// [`OnCpu::reader_timeout`](super::on_cpu::OnCpu::reader_timeout), and how much the reader has
/// taken.
pub(super) type ReaderTimeout = (Duration, Arc<AtomicUsize>);

impl<I, O> Shared<I, O> {
    pub(super) fn new(
        limits: &Limits,
        make: Make<I, O>,
        output_size: Option<Size<O>>,
        messages: UnboundedSender<Message<O>>,
    ) -> Self {
        let workers = limits.workers.min(limits.items);
        Self {
            chunks: SegQueue::new(),
            put_back: SegQueue::new(),
            workers: Workers::new(workers),
            stop: Stop::new(),
            window: Arc::new(Window::new(limits.items, limits.bytes)),
            pace: Pace::default(),
            batch: limits.batch,
            // A half of the window is at the workers, or somewhat more: meanwhile the pump
            // reads, and the consumer takes, the rest.
            most_in_batch: (limits.items / (2 * workers)).max(1),
            make,
            output_size,
            idle_seats: SegQueue::new(),
            messages,
        }
    }

    /// True if the caller must spawn a worker for it.
    #[must_use]
    pub(super) fn push(&self, chunk: Chunk<I>) -> bool {
        self.chunks.push(chunk);
        fence(SeqCst);
        self.workers.try_add()
    }

    /// The same, for what a worker has popped.
    #[must_use]
    pub(super) fn put_back(&self, chunk: Chunk<I>) -> bool {
        self.put_back.push(chunk);
        fence(SeqCst);
        self.workers.try_add()
    }

    pub(super) fn pop(&self) -> Option<Chunk<I>> {
        self.put_back.pop().or_else(|| self.chunks.pop())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.put_back.is_empty() && self.chunks.is_empty()
    }

    /// A worker has found no chunk. False if it must go on.
    #[must_use]
    pub(super) fn try_end_worker(&self) -> bool {
        self.workers.try_end(|| self.is_empty())
    }

    /// The input of this index has panicked.
    pub(super) fn failed_at(&self, index: u64) {
        self.stop.failed(index);
        self.window.wake_pump();
    }

    /// The consumer is woken once in `batch`, however many workers there are: a remote
    /// wake-up costs an I/O runtime two switches of threads.
    pub(super) fn longest_batch(&self) -> Duration {
        let workers = u32::try_from(self.workers.live()).unwrap_or(u32::MAX);
        let all = self.batch.saturating_mul(workers);
        all.min(LONGEST_BATCH).max(self.batch)
    }

    /// How many inputs a chunk has: a quarter of a batch, so that the workers share out
    /// what there is.
    pub(super) fn chunk_size(&self) -> usize {
        self.pace.inputs_in(self.batch / 4, self.most_in_batch)
    }

    /// `handle`: its lane sends late outputs.
    pub(super) fn seat(&self, handle: &Handle) -> Seat<I, O>
    where
        O: Send + 'static,
    {
        self.idle_seats.pop().unwrap_or_else(|| Seat {
            runner: (self.make)(),
            batch: Batch::new(&self.messages, handle.clone()),
        })
    }

    pub(super) fn keep_seat(&self, seat: Seat<I, O>) {
        self.idle_seats.push(seat);
        // Pairs with the fence in `cancel`: one of the two finds the seat.
        fence(SeqCst);
        if !self.stop.wants(0) {
            self.drop_seats();
        }
    }

    fn drop_seats(&self) {
        while self.idle_seats.pop().is_some() {}
    }

    /// Sends to the consumer. If it is gone, the caller's thread drops the message.
    ///
    /// The consumer's waker may panic. That must not unwind a worker: its drop would call the waker
    /// once more.
    pub(super) fn send(&self, message: Message<O>) {
        run_hook("the waker of a stream's reader", || {
            if let Err(unsent) = self.messages.send(message) {
                unsent.0.discard();
            }
        });
    }

    /// The consumer is gone, or late. The lane drops the inputs that no worker takes any more.
    pub(super) fn cancel(&self, handle: &Handle)
    where
        I: Send + 'static,
    {
        self.stop.all();
        fence(SeqCst);
        self.drop_seats();
        let inputs: Vec<_> = iter::from_fn(|| self.pop()).collect();
        if mem::needs_drop::<I>() && !inputs.is_empty() {
            adapters::drop_on_lane(handle, inputs);
        }
    }
}
