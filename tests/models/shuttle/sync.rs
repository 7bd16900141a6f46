//! In place of each crate's `src/sync.rs`: shuttle's types. What they do not have is made of them.

use std::collections::VecDeque;
use std::io;
use std::task::Waker;

pub(crate) use shuttle::sync::atomic::{
    AtomicBool, AtomicIsize, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(crate) use shuttle::sync::{Mutex, MutexGuard, mpsc};
pub(crate) use shuttle::thread_local;

/// A waker slot whose operations are atomic. (loom looks inside.)
#[derive(Default)]
pub(crate) struct AtomicWaker(Mutex<Option<Waker>>);

impl AtomicWaker {
    pub(crate) fn new() -> Self {
        Self::default()
    }
    pub(crate) fn register(&self, waker: &Waker) {
        let before = self.0.lock().unwrap().replace(waker.clone());
        drop(before);
    }
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.take() {
            waker.wake();
        }
    }
    pub(crate) fn take(&self) -> Option<Waker> {
        self.0.lock().unwrap().take()
    }
}

/// A queue whose operations are atomic.
pub(crate) struct Queue<T>(Mutex<VecDeque<T>>);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Queue<T> {
    pub(crate) fn push(&self, item: T) {
        self.0.lock().unwrap().push_back(item);
    }
    pub(crate) fn pop(&self) -> Option<T> {
        self.0.lock().unwrap().pop_front()
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

pub(crate) fn spawn(_: impl Into<String>, main: impl FnOnce() + Send + 'static) -> io::Result<()> {
    shuttle::thread::spawn(main);
    Ok(())
}

pub(crate) fn fence_of_loom() {}

/// A lane: its control thread, which does what is sent there.
#[derive(Clone)]
pub(crate) struct Handle(pub(crate) shuttle::sync::mpsc::Sender<Box<dyn FnOnce() + Send>>);

/// The ticker and the control thread, as the lane's adapters have them.
pub(crate) mod adapters {
    use std::time::Instant;

    use super::{Handle, Mutex};

    type Call = Box<dyn Fn() -> bool + Send>;

    shuttle::lazy_static! {
        static ref AT_TICKS: Mutex<Vec<Call>> = Mutex::new(Vec::new());
    }

    pub(crate) fn now() -> u32 {
        0
    }

    /// Every batch is old enough.
    pub(crate) fn has_passed(_: u32) -> bool {
        true
    }

    pub(crate) fn at_each_tick(call: impl Fn() -> bool + Send + 'static) {
        AT_TICKS.lock().unwrap().push(Box::new(call));
    }

    pub(crate) fn call_at(handle: &Handle, _: Instant, call: impl FnOnce() + Send + 'static) {
        // An error: the control thread has ended.
        let _ = handle.0.send(Box::new(call));
    }

    /// One tick.
    pub(crate) fn tick() {
        let calls = std::mem::take(&mut *AT_TICKS.lock().unwrap());
        for call in calls {
            if call() {
                AT_TICKS.lock().unwrap().push(call);
            }
        }
    }
}
