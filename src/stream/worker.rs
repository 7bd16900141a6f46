//! A worker of a stream: a job of the CPU lane that runs inputs until none is left.
//!
//! It works in *batches* (`batch.rs`). It pops chunks until half a millisecond has passed, or
//! would have passed after one more input, and hands all their outputs over in one message,
//! which is one wake-up of the consumer. So the hop between the threads costs the same part of
//! the time, whatever an input takes.
//!
//! Nothing waits for a batch to fill: a worker that finds no further chunk hands over what
//! it has. If the inputs have become so expensive that its slice (5 to 10 ms) is over
//! inside a chunk, it puts the rest of the chunk back for all workers.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::coop;

use super::runner::End;
use super::shared::{Chunk, MAX_SIZE, Message, Piece, Seat, Shared};
use twolane_core::adapters::{self, catch};
use twolane_core::{Handle, yield_if_due};

/// How long the second batch of a worker takes. Each further one takes twice as long, up to
/// the stream's setting.
const SECOND_BATCH: Duration = Duration::from_micros(20);

pub(super) struct Worker<I, O> {
    handle: Handle,
    shared: Arc<Shared<I, O>>,
    ended: bool,
}

/// A worker that its lane drops tells the consumer, which would wait for its outputs.
impl<I, O> Drop for Worker<I, O> {
    fn drop(&mut self) {
        if !self.ended {
            self.shared
                .send(Message::Lost(adapters::close_error(&self.handle)));
        }
    }
}

impl<I, O> Worker<I, O>
where
    I: Send + 'static,
    O: Send + 'static,
{
    /// The caller has added it to the number of workers.
    pub(super) fn spawn(handle: &Handle, shared: &Arc<Shared<I, O>>) {
        let worker = Self {
            handle: handle.clone(),
            shared: shared.clone(),
            ended: false,
        };
        // The closures of the stream's stages have no budget, as those of jobs have none.
        let work = coop::unconstrained(worker.run());
        // If the stream is dropped, it finds no chunk, and ends.
        adapters::detach_quietly(handle.spawn(work));
    }

    async fn run(mut self) {
        // The consumer may have nothing: the first batches are short, the first one a chunk.
        let mut batch = Duration::ZERO;
        loop {
            if !self.run_batch(batch) && self.shared.try_end_worker() {
                self.ended = true;
                if !self.shared.stop.wants(0) {
                    // The stream was dropped: so was this job.
                    adapters::cancel_job();
                    pending().await
                }
                return;
            }
            let longer = batch.saturating_mul(2).max(SECOND_BATCH);
            batch = longer.min(self.shared.longest_batch());
            yield_if_due().await;
        }
    }

    /// False if there was no chunk.
    fn run_batch(&self, batch: Duration) -> bool {
        let Some(chunk) = self.shared.pop() else {
            return false;
        };
        if !self.shared.stop.wants(chunk.first) {
            return true;
        }
        match catch(|| self.shared.seat(&self.handle)) {
            Ok(seat) => self.run_chunks(seat, chunk, batch),
            Err(error) => {
                self.shared.failed_at(chunk.first);
                let failed = Piece::failed(chunk.first, error);
                self.shared.send(Message::Pieces(vec![failed]));
            }
        }
        true
    }

    fn run_chunks(&self, mut seat: Seat<I, O>, mut chunk: Chunk<I>, batch: Duration) {
        let shared = &*self.shared;
        let began = Instant::now();
        seat.batch.open();
        let (mut last, mut inputs, mut made) = (began, 0, Piece::new(0, 0));
        let end = loop {
            let (first, at_once) = (chunk.first, shared.pace.inputs_at_once(chunk.items.len()));
            let end = loop {
                let end = run_some(shared, &mut seat, &mut chunk, &mut made, at_once);
                if end != End::Whole || chunk.items.len() == 0 {
                    break end;
                }
            };
            // The part that is put back counts with the whole chunk, until it has been run.
            if end != End::SliceOver || chunk.items.len() == 0 {
                shared.window.replace(chunk.bytes, 0);
            }
            let now = Instant::now();
            let ran = (chunk.first - first) as usize;
            shared.pace.measured(now - last, ran);
            inputs += ran;
            last = now;
            let with_one_more = now - began + shared.pace.cost();
            let is_over = with_one_more >= batch || inputs >= shared.most_in_batch;
            if end != End::Whole || is_over {
                break end;
            }
            match shared.pop() {
                Some(next) => chunk = next,
                None => break end,
            }
        };
        if end == End::SliceOver {
            self.put_back(chunk);
        }
        let pieces = seat.batch.close();
        if !pieces.is_empty() {
            shared.send(Message::Pieces(pieces));
        }
        // After a panic the runner's state may be broken: drop it.
        if end != End::Panicked {
            shared.keep_seat(seat);
        }
    }

    /// In chunks of their new size, and one for each worker at least: the measured cost may
    /// still be that of cheaper inputs.
    fn put_back(&self, mut chunk: Chunk<I>) {
        let each = chunk.items.len().div_ceil(self.shared.workers.most());
        let size = self.shared.chunk_size().min(each);
        while chunk.items.len() > 0 {
            let items: Vec<_> = chunk.items.by_ref().take(size).collect();
            let is_last = chunk.items.len() == 0;
            let part = Chunk {
                first: chunk.first,
                items: items.into_iter(),
                // The window counts all of them until the last one is run.
                bytes: if is_last { chunk.bytes } else { 0 },
            };
            chunk.first += size as u64;
            if self.shared.put_back(part) {
                Self::spawn(&self.handle, &self.shared);
            }
        }
    }
}

/// Runs the next inputs of `chunk`, and puts their outputs into the batch. `made` is empty.
fn run_some<I, O: Send + 'static>(
    shared: &Shared<I, O>,
    seat: &mut Seat<I, O>,
    chunk: &mut Chunk<I>,
    made: &mut Piece<O>,
    inputs: usize,
) -> End {
    let room = chunk.items.len();
    made.first = chunk.first;
    made.is_one_for_one = true;
    let end = catch(|| {
        let mut inputs = chunk.items.by_ref().take(inputs);
        let end = seat.runner.run(&mut inputs, &shared.stop, made);
        if let Some(size) = &shared.output_size {
            let sizes = made.outputs.iter().map(size);
            let bytes = sizes.fold(0, |sum, size| size.saturating_add(sum).min(MAX_SIZE));
            shared.window.replace(0, bytes);
            made.bytes = bytes;
        }
        end
    });
    let end = end.unwrap_or_else(|error| {
        made.failure = Some(error);
        End::Panicked
    });
    // After a panic the last input may have made several outputs, or none.
    made.is_one_for_one &= made.outputs.len() <= made.inputs;
    chunk.first = made.end();
    if end == End::Panicked {
        shared.failed_at(chunk.first.saturating_sub(1));
    }
    seat.batch.put(made, room);
    end
}
