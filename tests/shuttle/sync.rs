//! In place of `src/sync.rs`.

pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU32, Ordering};
pub(crate) use shuttle::sync::{Mutex, MutexGuard};

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
