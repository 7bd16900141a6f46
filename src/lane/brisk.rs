//! Whether a level's jobs end so soon that it is cheaper to wait for one than to
//! sleep.
//!
//! An awaiting task that is not ready costs its runtime a trip through its
//! scheduler: the worker looks for others' work, sleeps in `epoll_wait`, is
//! woken by a write, and wakes another worker in turn; some 5 to 10 µs of
//! computing, on the side that shall be kept free. A job that takes less than a
//! microsecond, on a lane whose thread is awake, has ended long before. So
//! whoever asks for the first time looks on for [`PATIENCE`] at most, if the
//! lane's last jobs were as short: the waste is small where that was wrong, and
//! none where jobs compute, as they should.

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// A job that takes no longer is short, and nobody waits longer for one.
const PATIENCE: Duration = Duration::from_micros(1);

pub(crate) struct Briskness {
    is_brisk: AtomicBool,
    /// On one core nothing ends while somebody waits.
    is_possible: bool,
}

impl Briskness {
    pub(super) fn new() -> Self {
        Self {
            is_brisk: AtomicBool::new(false),
            is_possible: thread::available_parallelism().is_ok_and(|cores| cores.get() > 1),
        }
    }

    /// Runs a job as a sample of what the level's jobs are.
    pub(crate) fn sample<R>(&self, run: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = run();
        self.set(start.elapsed() < PATIENCE);
        result
    }

    /// Nobody is awake to run one.
    pub(crate) fn end(&self) {
        self.set(false);
    }

    fn set(&self, is_brisk: bool) {
        // A store only if it changes something: many read this.
        if self.is_brisk.load(Relaxed) != is_brisk && self.is_possible {
            self.is_brisk.store(is_brisk, Relaxed);
        }
    }

    pub(crate) fn wait_while(&self, may_end_soon: impl Fn() -> bool) {
        if !self.is_brisk.load(Relaxed) || !may_end_soon() {
            return;
        }
        let start = Instant::now();
        while may_end_soon() && start.elapsed() < PATIENCE {
            hint::spin_loop();
        }
    }
}
