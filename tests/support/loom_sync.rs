//! `src/sync.rs` as `tests/loom` has it: loom's.

use std::collections::VecDeque;
use std::task::Waker;

pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(crate) use loom::sync::{Mutex, MutexGuard};

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

pub(crate) struct Queue<T>(loom::sync::Mutex<VecDeque<T>>);

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self(loom::sync::Mutex::new(VecDeque::new()))
    }
    pub(crate) fn push(&self, item: T) {
        self.0.lock().unwrap().push_back(item);
    }
    pub(crate) fn pop(&self) -> Option<T> {
        self.0.lock().unwrap().pop_front()
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

pub(crate) fn fence_of_loom() {
    fence(Ordering::SeqCst);
}
