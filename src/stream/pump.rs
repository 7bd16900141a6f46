//! The pump: reads the source of a stream on the lane where it belongs, as far as the
//! window allows, and spawns workers for what it has read.
//!
//! It is a task of its own, so the source goes on while the consumer is busy. What it has
//! read in one poll goes to the workers at the end of that poll.

use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, atomic::Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_core::Stream;
use pin_project_lite::pin_project;
use tokio::task::coop;

use super::late_reader::LateReader;
use super::shared::{Chunk, MAX_SIZE, Message, Piece, ReaderTimeout, Shared, Size};
use super::unread::drop_each;
use super::worker::Worker;
use twolane_core::adapters::{self, catch};
use twolane_core::{Handle, JoinError};

/// The pump looks at the clock after so many inputs at most.
const INPUTS_PER_LOOK: usize = 64;

/// If the inputs of one look take longer than this, the workers get them at once.
const TIME_PER_LOOK: Duration = Duration::from_micros(10);

pin_project! {
    pub(super) struct Pump<S: Stream, O> {
        #[pin]
        source: S,
        feed: Feed<S::Item, O>,
    }
}

/// The lane that polls the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceLane {
    Io,
    Cpu,
}

impl SourceLane {
    /// How long the pump reads before it yields. Otherwise a source that is always ready
    /// would not give the thread back to its lane.
    fn turn(self) -> Duration {
        match self {
            Self::Io => Duration::from_micros(20),
            Self::Cpu => Duration::from_micros(500),
        }
    }
}

/// The pump's end of the stream.
pub(super) struct Feed<I, O> {
    handle: Handle,
    shared: Arc<Shared<I, O>>,
    input_size: Option<Size<I>>,
    lane: SourceLane,
    reader: Option<ReaderTimeout>,
    /// Ready when the CPU lane closes.
    closing: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The index of the next input to go to the workers.
    next: u64,
    /// Read, and not yet given to the workers.
    read: Vec<I>,
    /// Their size, if it counts.
    read_bytes: usize,
    /// Read last, and to be weighed: it may have to wait for room.
    waiting: Option<(I, usize)>,
    /// Workers that are counted, and not yet spawned.
    unspawned: usize,
    /// The end of the CPU lane wakes the pump.
    is_registered: bool,
    /// How many inputs are read from one look at the clock to the next.
    inputs_per_look: usize,
    late_reader: LateReader,
    /// The consumer gets all that it waits for, or an error, without the pump.
    finished: bool,
}

impl<I, O> Drop for Feed<I, O> {
    fn drop(&mut self) {
        if !self.finished {
            // `None` if the I/O runtime ends just now: then the pump's task has the error.
            self.shared
                .send(Message::Lost(adapters::close_error(&self.handle)));
        }
        let waiting = self.waiting.take().map(|(input, _)| input);
        let read = mem::take(&mut self.read).into_iter().chain(waiting);
        drop_each("the destructor of a stream's input", read);
    }
}

impl<S: Stream, O> Pump<S, O> {
    pub(super) fn new(source: S, feed: Feed<S::Item, O>) -> Self {
        Self { source, feed }
    }
}

/// How a turn of reading has ended.
enum Read {
    /// The source wakes the pump.
    Waits,
    /// The window does.
    WindowIsFull,
    TurnIsOver,
    SourceEnded,
}

impl<I, O> Feed<I, O>
where
    I: Send + 'static,
    O: Send + 'static,
{
    pub(super) fn new(
        handle: &Handle,
        shared: &Arc<Shared<I, O>>,
        input_size: Option<Size<I>>,
        lane: SourceLane,
        reader: Option<ReaderTimeout>,
    ) -> Self {
        Self {
            handle: handle.clone(),
            shared: shared.clone(),
            input_size,
            lane,
            reader,
            closing: Box::pin(coop::unconstrained(handle.closed())),
            next: 0,
            read: Vec::new(),
            read_bytes: 0,
            waiting: None,
            unspawned: 0,
            is_registered: false,
            inputs_per_look: 1,
            late_reader: LateReader::default(),
            finished: false,
        }
    }

    fn read<S: Stream<Item = I>>(&mut self, mut source: Pin<&mut S>, cx: &mut Context<'_>) -> Read {
        let began = Instant::now();
        let (mut looked, mut room) = (began, 0);
        loop {
            if let Some((input, size)) = self.waiting.take() {
                let together = self.read_bytes.saturating_add(size);
                if !self.shared.window.fits(together) {
                    self.give();
                    if self.shared.window.poll_fits(cx, size).is_pending() {
                        self.waiting = Some((input, size));
                        return Read::WindowIsFull;
                    }
                }
                self.read.push(input);
                self.read_bytes += size;
            }
            if room == 0 {
                let now = Instant::now();
                let chunk_size = self.shared.chunk_size();
                let is_slow = now - looked > TIME_PER_LOOK;
                looked = now;
                self.inputs_per_look = match is_slow {
                    true => 1,
                    false => (self.inputs_per_look * 2).min(INPUTS_PER_LOOK),
                };
                if is_slow || self.read.len() >= chunk_size {
                    self.give();
                }
                if now - began > self.lane.turn() {
                    return Read::TurnIsOver;
                }
                let room_now = match self.shared.window.poll_room(cx) {
                    Poll::Ready(items) => items - self.read.len(),
                    Poll::Pending => 0,
                };
                if room_now == 0 {
                    return Read::WindowIsFull;
                }
                // A chunk gets no more inputs than this look finds right.
                let rest_of_chunk = chunk_size.saturating_sub(self.read.len()).max(1);
                room = room_now.min(self.inputs_per_look).min(rest_of_chunk);
            }
            match source.as_mut().poll_next(cx) {
                Poll::Pending => return Read::Waits,
                // It drops what the source may read from, and wakes the pump. The drop of
                // the feed tells the consumer.
                Poll::Ready(_) if adapters::is_closed(&self.handle) => return Read::Waits,
                Poll::Ready(None) => return Read::SourceEnded,
                Poll::Ready(Some(input)) => {
                    room -= 1;
                    match &self.input_size {
                        None => self.read.push(input),
                        Some(size) => {
                            let size = size(&input).min(MAX_SIZE);
                            self.waiting = Some((input, size));
                        }
                    }
                }
            }
        }
    }

    /// The window is full. Whether the reader has all that is in it, and takes nothing.
    fn is_reader_late(&mut self) -> Option<JoinError> {
        let (limit, taken) = self.reader.as_ref()?;
        let Shared {
            workers, window, ..
        } = &*self.shared;
        let taken = (workers.live() == 0).then(|| taken.load(Relaxed));
        let window = Arc::downgrade(window);
        let look = move || _ = window.upgrade().map(|window| window.wake_pump());
        let is_late = self.late_reader.is_late(&self.handle, *limit, taken, look);
        is_late.then(|| adapters::late_reader(*limit))
    }

    fn fail(&mut self, error: JoinError) {
        let failed = Piece::failed(self.next, error);
        self.end(Message::Pieces(vec![failed]));
    }

    fn end(&mut self, last: Message<O>) {
        self.finished = true;
        self.shared.send(last);
    }

    /// Gives what was read to the workers.
    fn give(&mut self) {
        let items = mem::take(&mut self.read);
        let bytes = mem::take(&mut self.read_bytes);
        if items.is_empty() {
            return;
        }
        self.shared.window.take(items.len(), bytes);
        self.late_reader.waits = None;
        let first = self.next;
        self.next += items.len() as u64;
        let chunk = Chunk {
            first,
            items: items.into_iter(),
            bytes,
        };
        self.unspawned += usize::from(self.shared.push(chunk));
    }
}

impl<S, O> Future for Pump<S, O>
where
    S: Stream,
    S::Item: Send + 'static,
    O: Send + 'static,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let feed = this.feed;
        if !feed.shared.stop.wants(feed.next) {
            feed.finished = true;
            return Poll::Ready(());
        }
        // A pump of the CPU lane is a job, which ends with its lane. One of the I/O lane
        // registers once, as a task keeps its waker: that takes a lock, for which all pumps
        // of the lane wait.
        if feed.lane == SourceLane::Io {
            if !mem::replace(&mut feed.is_registered, true) {
                let _ = feed.closing.as_mut().poll(cx);
            }
            if adapters::is_closed(&feed.handle) {
                // The drop of the feed tells the consumer.
                return Poll::Ready(());
            }
        }
        let read = catch(|| feed.read(this.source.as_mut(), cx));
        feed.give();
        for _ in 0..mem::take(&mut feed.unspawned) {
            Worker::spawn(&feed.handle, &feed.shared);
        }
        let mut again = false;
        match read {
            Ok(Read::Waits) => {}
            Ok(Read::WindowIsFull) => {
                if let Some(error) = feed.is_reader_late() {
                    feed.fail(error);
                    // No worker is left: it drops their states.
                    feed.shared.cancel(&feed.handle);
                    return Poll::Ready(());
                }
            }
            Ok(Read::TurnIsOver) => again = true,
            Ok(Read::SourceEnded) => {
                feed.end(Message::End(feed.next));
                return Poll::Ready(());
            }
            Err(_) if adapters::is_closed(&feed.handle) => {}
            Err(error) => {
                feed.fail(error);
                return Poll::Ready(());
            }
        }
        if !feed.shared.stop.wants(feed.next) {
            // A stage has failed since, and may have woken this task before it had
            // registered for that.
            again = true;
        }
        if again {
            match feed.lane {
                // The worker calls the waker after its other tasks, and keeps this one.
                SourceLane::Io => drop(pin!(tokio::task::yield_now()).poll(cx)),
                SourceLane::Cpu => cx.waker().wake_by_ref(),
            }
        }
        Poll::Pending
    }
}
