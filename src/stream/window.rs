//! How much of a stream is under way: read from the source, and not yet taken by the
//! consumer.
//!
//! The pump takes room for each input that it has read. The consumer gives it back when
//! it has handed out the last output of that input. A worker replaces the size of an
//! input by the size of its outputs, since the input is gone then.
//!
//! **Wake-ups.** Only the pump waits for room. It registers its waker and then looks at
//! the counts. Consumer and workers change a count and then wake the pump. So one of the
//! two sees the other (loom model in `tests/models`). All accesses are `SeqCst` for that.
//!
//! **Obligations.** [safety] Room is given back once for each input, so no more is under way than the
//! limits say. [liveness] A pump that waits for room is woken when there is some.

use std::task::{Context, Poll};

use crate::sync::{AtomicUsize, AtomicWaker, Ordering::SeqCst};

pub(crate) struct Window {
    most_items: usize,
    most_bytes: usize,
    items: AtomicUsize,
    bytes: AtomicUsize,
    pump: AtomicWaker,
}

impl Window {
    pub(crate) fn new(most_items: usize, most_bytes: usize) -> Self {
        Self {
            most_items,
            most_bytes,
            items: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            pump: AtomicWaker::new(),
        }
    }

    /// Returns how many inputs may be read now: at least one.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<usize> {
        self.pump.register(cx.waker());
        let room = self.most_items - self.items.load(SeqCst);
        if room > 0 && self.bytes.load(SeqCst) < self.most_bytes {
            Poll::Ready(room)
        } else {
            Poll::Pending
        }
    }

    /// Whether inputs of this size fit.
    pub(crate) fn fits(&self, size: usize) -> bool {
        self.bytes.load(SeqCst).saturating_add(size) <= self.most_bytes
    }

    /// Ready if an input of this size may go in: it fits, or it goes alone.
    pub(crate) fn poll_fits(&self, cx: &mut Context<'_>, size: usize) -> Poll<()> {
        self.pump.register(cx.waker());
        if self.fits(size) || self.bytes.load(SeqCst) == 0 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// The pump has read these.
    pub(crate) fn take(&self, items: usize, bytes: usize) {
        self.items.fetch_add(items, SeqCst);
        self.bytes.fetch_add(bytes, SeqCst);
    }

    /// A worker has turned inputs of this size into such outputs.
    pub(crate) fn replace(&self, inputs: usize, outputs: usize) {
        if inputs < outputs {
            self.bytes.fetch_add(outputs - inputs, SeqCst);
        } else if inputs > outputs {
            self.bytes.fetch_sub(inputs - outputs, SeqCst);
            self.pump.wake();
        }
    }

    /// The consumer has taken these.
    pub(crate) fn give_back(&self, items: usize, bytes: usize) {
        self.items.fetch_sub(items, SeqCst);
        if bytes > 0 {
            self.bytes.fetch_sub(bytes, SeqCst);
        }
        self.pump.wake();
    }

    /// For the pump to see what else has changed.
    pub(crate) fn wake_pump(&self) {
        self.pump.wake();
    }

    pub(crate) fn items(&self) -> usize {
        self.items.load(SeqCst)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(SeqCst)
    }
}
