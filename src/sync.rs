//! What our protocols are written with: the atomics of the standard library, a
//! queue and a waker slot of kept crates; or loom's stand-ins for them when a
//! model is checked (`--cfg twolane_loom`; not `--cfg loom`, under which Tokio
//! itself would lose its runtimes).

#[cfg(not(twolane_loom))]
mod imp {
    pub(crate) use atomic_waker::AtomicWaker;
    pub(crate) use crossbeam_queue::SegQueue as Queue;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};
}

#[cfg(twolane_loom)]
mod imp {
    use std::collections::VecDeque;
    use std::task::Waker;

    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};

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
    }
}

pub(crate) use imp::*;
