//! The outputs of a worker's batch, while it is under way.
//!
//! A worker puts the outputs of each input here before it begins the next one (of inputs that
//! are cheaper than the lock, those of some inputs together), and sends all of them when the
//! batch is over. An input may take longer than any batch, and a closure can't be interrupted:
//! 5 to 10 ms after the batch began, the ticker has the lane's control thread send what is here. (A
//! reader's waker may block, and the ticker serves all lanes.) The outputs of quick inputs
//! do not wait for a slow one behind them, except for those that are put here with it.
//!
//! The control thread takes the lock only if it is free. A worker that holds it is not inside an
//! input, and sends the outputs itself. The control thread sends under the lock, so that what a
//! dropped reader does not take is back before the worker looks. The reader's waker runs
//! then: the worker waits for it, as if it called the waker itself.
//!
//! **Ticks.** A worker opens its batch and then looks whether the ticker has it. The ticker
//! gives back a batch that is closed, and then looks at it once more. All of these accesses
//! are `SeqCst`, so one of the two sees the other, and no open batch is without a ticker.
//!
//! **Obligations.** [safety] Each output is sent once, by the worker, or by the control thread;
//! those of one piece stay in order. [liveness] What is put before an input that does not end is
//! sent.

use std::mem;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::mpsc::error::SendError;

use super::shared::{Message, Piece};
use crate::sync::{AtomicBool, AtomicU32, Handle, Mutex, MutexGuard, Ordering::SeqCst, adapters};
use twolane_core::adapters::run_hook;

pub(crate) struct Batch<O> {
    pieces: Mutex<Vec<Piece<O>>>,
    messages: UnboundedSender<Message<O>>,
    /// The tick at which it was opened, or [`CLOSED`].
    began: AtomicU32,
    /// The ticker has it.
    is_watched: AtomicBool,
    handle: Handle,
    /// The control thread is about to send the outputs.
    is_late: AtomicBool,
}

/// No tick has this number.
const CLOSED: u32 = u32::MAX;

impl<O: Send + 'static> Batch<O> {
    pub(crate) fn new(messages: &UnboundedSender<Message<O>>, handle: Handle) -> Arc<Self> {
        Arc::new(Self {
            pieces: Mutex::default(),
            messages: messages.clone(),
            began: AtomicU32::new(CLOSED),
            is_watched: AtomicBool::new(false),
            handle,
            is_late: AtomicBool::new(false),
        })
    }

    pub(crate) fn open(self: &Arc<Self>) {
        self.began.store(adapters::now(), SeqCst);
        if !self.is_watched.swap(true, SeqCst) {
            let batch = self.clone();
            adapters::at_each_tick(move || batch.at_tick());
        }
    }

    /// Adds the outputs of the next inputs. `room` is how many inputs their chunk had left.
    pub(crate) fn put(&self, made: &mut Piece<O>, room: usize) {
        let mut pieces = self.pieces();
        if pieces.last().is_none_or(|last| last.end() != made.first) {
            pieces.push(Piece::new(made.first, room));
        }
        let piece = pieces.last_mut().expect("it was pushed if there was none");
        piece.join(made);
    }

    /// Returns what the ticker has not sent.
    pub(crate) fn close(&self) -> Vec<Piece<O>> {
        self.began.store(CLOSED, SeqCst);
        mem::take(&mut self.pieces())
    }

    fn pieces(&self) -> MutexGuard<'_, Vec<Piece<O>>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False if the ticker may drop it.
    fn at_tick(self: &Arc<Self>) -> bool {
        let began = self.began.load(SeqCst);
        if began == CLOSED {
            self.is_watched.store(false, SeqCst);
            let is_open = self.began.load(SeqCst) != CLOSED;
            return is_open && !self.is_watched.swap(true, SeqCst);
        }
        let has_some = || {
            self.pieces
                .try_lock()
                .is_ok_and(|pieces| !pieces.is_empty())
        };
        if adapters::has_passed(began) && has_some() && !self.is_late.swap(true, SeqCst) {
            let batch = self.clone();
            adapters::call_at(&self.handle, Instant::now(), move || batch.send_late());
        }
        true
    }

    fn send_late(&self) {
        self.is_late.store(false, SeqCst);
        match self.pieces.try_lock() {
            Ok(mut pieces) if !pieces.is_empty() => {
                let late = Message::Pieces(mem::take(&mut *pieces));
                run_hook("the waker of a stream's reader", || {
                    if let Err(SendError(Message::Pieces(unsent))) = self.messages.send(late) {
                        // The reader is gone: the worker drops them, on its lane.
                        *pieces = unsent;
                    }
                });
            }
            _ => {}
        }
    }
}
