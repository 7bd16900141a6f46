//! A worker of a stream: a job of the CPU lane that runs inputs until none is left.
//!
//! It works in *batches*. It pops chunks until half a millisecond has passed, and hands
//! all their outputs over in one message, which is one wake-up of the consumer. So the hop
//! between the threads costs the same part of the time, whatever an input takes.
//!
//! Nothing waits for a batch to fill: a worker that finds no further chunk hands over what
//! it has. If the inputs have become so expensive that its slice (5 to 10 ms) is over
//! inside a chunk, it puts the rest of the chunk back for all workers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;
use tokio::task::coop;

use super::runner::{End, Ran, Run};
use super::shared::{Chunk, MAX_SIZE, Message, Piece, Shared};
use crate::admission::Permit;
use crate::error::{CloseReason, JoinError};
use crate::lane::Level;
use crate::panics;
use crate::task::slice::{is_slice_over, ticks, yield_if_due};

/// How long the first batch of a worker takes. Each further one takes twice as long, up to
/// the stream's setting.
const FIRST_BATCH: Duration = Duration::from_micros(20);

pub(super) struct Worker<I, O> {
    level: Level,
    shared: Arc<Shared<I, O>>,
    messages: UnboundedSender<Message<O>>,
    ended: bool,
}

/// A worker that its lane drops tells the consumer, which would wait for its outputs.
impl<I, O> Drop for Worker<I, O> {
    fn drop(&mut self) {
        if !self.ended {
            let reason = self.level.lane().close_reason();
            // A lane that is not closed drops a job if its threads do not start.
            let lost = Message::Lost(reason.unwrap_or(CloseReason::NoThreads).into());
            // An error means that the consumer is gone.
            let _ = self.messages.send(lost);
        }
    }
}

impl<I, O> Worker<I, O>
where
    I: Send + 'static,
    O: Send + 'static,
{
    pub(super) fn new(
        level: &Level,
        shared: &Arc<Shared<I, O>>,
        messages: &UnboundedSender<Message<O>>,
    ) -> Self {
        Self {
            level: level.clone(),
            shared: shared.clone(),
            messages: messages.clone(),
            ended: false,
        }
    }

    /// Spawns it. The caller has added it to the number of workers.
    pub(super) fn spawn(self, permit: Permit) {
        let shared = self.shared.clone();
        // The closures of the stream's stages have no budget, as those of jobs have none.
        shared.spawned(permit.spawn(coop::unconstrained(self.run())));
    }

    async fn run(mut self) {
        // The consumer may have nothing: the first batches are short.
        let mut batch = FIRST_BATCH.min(self.shared.batch);
        loop {
            if !self.run_batch(batch) && self.shared.try_end_worker() {
                self.ended = true;
                return;
            }
            batch = batch.saturating_mul(2).min(self.shared.longest_batch());
            yield_if_due().await;
        }
    }

    /// False if there was no chunk.
    fn run_batch(&self, batch: Duration) -> bool {
        let Some(chunk) = self.shared.pop() else {
            return false;
        };
        let mut pieces = Vec::new();
        match panics::catch(|| self.shared.runner()) {
            Ok(Some(runner)) => self.run_chunks(runner, chunk, &mut pieces, batch),
            Ok(None) => drop(chunk),
            Err(payload) => {
                self.shared.failed_at(chunk.first);
                pieces.push(Piece::failed(chunk.first, JoinError::of_unwinding(payload)));
            }
        }
        if let Err(unsent) = self.messages.send(Message::Pieces(pieces)) {
            panics::run_hook("the report of a panic", || unsent.0.discard());
        }
        true
    }

    fn run_chunks(
        &self,
        mut runner: Box<dyn Run<I, O>>,
        mut chunk: Chunk<I>,
        pieces: &mut Vec<Piece<O>>,
        batch: Duration,
    ) {
        let shared = &*self.shared;
        let (began, slice) = (Instant::now(), ticks());
        let (mut last, mut inputs) = (began, 0);
        loop {
            let piece = piece_for(pieces, &chunk);
            let (done, end) = run_chunk(shared, &mut *runner, &mut chunk, piece, slice);
            let now = Instant::now();
            shared.measured(now - last, done);
            inputs += done;
            last = now;
            match end {
                // The runner's state may be broken: drop it.
                End::Panicked => return,
                End::Stopped => break,
                End::SliceOver => {
                    self.put_back(chunk);
                    break;
                }
                End::Whole => {}
            }
            let is_over = now - began >= batch || inputs >= shared.most_in_batch;
            if is_over || is_slice_over(slice) {
                break;
            }
            match shared.pop() {
                Some(next) => chunk = next,
                None => break,
            }
        }
        shared.keep_runner(runner);
    }

    /// In chunks of their new size, so that other workers share them.
    fn put_back(&self, mut chunk: Chunk<I>) {
        let size = self.shared.chunk_size();
        while chunk.items.len() > size {
            let items: Vec<_> = chunk.items.by_ref().take(size).collect();
            let part = Chunk {
                first: chunk.first,
                items: items.into_iter(),
                // The window counts all of them until the last one is run.
                bytes: 0,
            };
            chunk.first += size as u64;
            self.put_part_back(part);
        }
        self.put_part_back(chunk);
    }

    fn put_part_back(&self, part: Chunk<I>) {
        if self.shared.put_back(part) {
            // Covered by the permit of this job. An error means that the lane is closed.
            let permit = Permit::try_new(&self.level);
            let worker = Self::new(&self.level, &self.shared, &self.messages);
            if let Ok(permit) = permit {
                worker.spawn(permit);
            }
        }
    }
}

/// The piece to which the outputs of `chunk` belong: the last one, if the chunk goes on
/// where that ends.
fn piece_for<'a, I, O>(pieces: &'a mut Vec<Piece<O>>, chunk: &Chunk<I>) -> &'a mut Piece<O> {
    if pieces.last().is_none_or(|last| last.end() != chunk.first) {
        pieces.push(Piece::new(chunk.first, chunk.items.len()));
    }
    pieces.last_mut().expect("it was pushed if there was none")
}

/// Runs inputs of `chunk`, and returns how many.
fn run_chunk<I, O>(
    shared: &Shared<I, O>,
    runner: &mut dyn Run<I, O>,
    chunk: &mut Chunk<I>,
    piece: &mut Piece<O>,
    slice: u32,
) -> (usize, End) {
    let before = piece.outputs.len();
    let mut ran = Ran {
        inputs: 0,
        outputs: &mut piece.outputs,
        before,
        is_one_for_one: true,
        is_error: false,
    };
    let mut bytes = 0;
    let end = panics::catch(|| {
        let (inputs, stop) = (&mut chunk.items, &shared.stop);
        let end = runner.run(inputs, chunk.first, stop, slice, &mut ran);
        if let Some(size) = &shared.output_size {
            let sizes = ran.outputs[before..].iter().map(size);
            bytes = sizes.fold(0, |sum, size| size.saturating_add(sum).min(MAX_SIZE));
        }
        end
    });
    let Ran {
        inputs,
        is_error,
        is_one_for_one,
        ..
    } = ran;
    piece.is_one_for_one &= is_one_for_one;
    piece.is_last = is_error;
    piece.inputs += inputs;
    piece.bytes = piece.bytes.saturating_add(bytes);
    let end = end.unwrap_or_else(|payload| {
        // Nothing comes after an error, not even the panic of the size function over it.
        piece.failure = (!is_error).then(|| JoinError::of_unwinding(payload));
        End::Panicked
    });
    if is_error || end == End::Panicked {
        shared.failed_at(piece.end().saturating_sub(1));
    }
    chunk.first += inputs as u64;
    // The part that is put back counts with the whole chunk, until it has been run.
    let gone = if end == End::SliceOver {
        0
    } else {
        chunk.bytes
    };
    shared.window.replace(gone, bytes);
    (inputs, end)
}
