//! In place of each crate's `src/sync.rs`: loom's types.

use std::array;
use std::task::Waker;

use loom::thread;

pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicIsize, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(crate) use loom::sync::{Mutex, MutexGuard};

/// Loom's does not know `const`.
macro_rules! loom_thread_local {
    ($($(#[$meta:meta])* static $name:ident: $type:ty = const { $init:expr };)*) => {
        $(loom::thread_local! { $(#[$meta])* static $name: $type = $init; })*
    };
}
pub(crate) use loom_thread_local as thread_local;

pub(crate) struct AtomicWaker(loom::future::AtomicWaker);

impl AtomicWaker {
    pub(crate) fn new() -> Self {
        Self(loom::future::AtomicWaker::new())
    }
    pub(crate) fn register(&self, waker: &Waker) {
        self.0.register_by_ref(waker);
    }
    pub(crate) fn wake(&self) {
        self.0.wake();
    }
    pub(crate) fn take(&self) -> Option<Waker> {
        self.0.take_waker()
    }
}

impl Default for AtomicWaker {
    fn default() -> Self {
        Self::new()
    }
}

/// More items than any model pushes.
const SLOTS: usize = 8;

/// A model of crossbeam's `SegQueue`: one segment, of which each slot is used once.
///
/// It gives the same orderings and no more. A pusher and a popper each claim a slot by
/// a compare-exchange of their own index. The popper of a slot sees what happened
/// before the push into that slot. (`SegQueue` has some `SeqCst` accesses and fences.
/// Its documentation does not promise them, so no protocol may rely on them.)
pub(crate) struct Queue<T> {
    head: AtomicUsize,
    tail: AtomicUsize,
    slots: [Slot<T>; SLOTS],
}

struct Slot<T> {
    is_written: AtomicBool,
    /// The standard library's mutex, which loom does not see, so it orders nothing in a
    /// model. One thread at a time locks it: the indices give each slot to one pusher
    /// and one popper.
    value: std::sync::Mutex<Option<T>>,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self {
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            slots: array::from_fn(|_| Slot {
                is_written: AtomicBool::new(false),
                value: std::sync::Mutex::new(None),
            }),
        }
    }

    pub(crate) fn push(&self, item: T) {
        let one_more = |tail: usize| Some(tail + 1);
        let claimed = self
            .tail
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
        let slot = &self.slots[claimed.expect("there is always one more")];
        *slot.value.try_lock().expect("its pusher is alone") = Some(item);
        slot.is_written.store(true, Ordering::Release);
    }

    pub(crate) fn pop(&self) -> Option<T> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            // Relaxed, as in `SegQueue`: an old tail makes the queue look empty.
            if head == self.tail.load(Ordering::Relaxed) {
                return None;
            }
            let next = head + 1;
            let claimed =
                self.head
                    .compare_exchange(head, next, Ordering::AcqRel, Ordering::Acquire);
            match claimed {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        let slot = &self.slots[head];
        while !slot.is_written.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let item = slot.value.try_lock().expect("its popper is alone").take();
        Some(item.expect("a written slot has a value"))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Ordering::Acquire) == self.tail.load(Ordering::Acquire)
    }
}

pub(crate) fn fence_of_loom() {
    fence(Ordering::SeqCst);
}
