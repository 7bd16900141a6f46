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
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::context;
use crate::job::state::State;

/// A job that takes no longer is short.
const SHORT: Duration = Duration::from_micros(1);
/// Nobody waits longer for one; a trip through the scheduler takes as long.
const PATIENCE: Duration = Duration::from_micros(5);

/// The number of short samples that it takes to begin again after a wait was in
/// vain: four times as many each time, up to this.
const MOST_SAMPLES: u32 = 256;

/// All hints: who reads an old value waits in vain, or not.
pub(crate) struct Briskness {
    is_brisk: AtomicBool,
    /// Short samples in a row, and how many of them it takes.
    short: AtomicU32,
    needed: AtomicU32,
    /// On one core nothing ends while somebody waits.
    is_possible: bool,
}

impl Briskness {
    pub(super) fn new() -> Self {
        Self {
            is_brisk: AtomicBool::new(false),
            short: AtomicU32::new(0),
            needed: AtomicU32::new(1),
            is_possible: thread::available_parallelism().is_ok_and(|cores| cores.get() > 1),
        }
    }

    /// A job took so long: a sample of what the level's jobs are. Says whether
    /// that is short.
    pub(crate) fn sample(&self, took: Duration) -> bool {
        let is_short = took < SHORT;
        if !is_short {
            self.end();
        } else if !self.is_brisk.load(Relaxed) && self.is_possible {
            let short = self.short.load(Relaxed) + 1;
            self.short.store(short, Relaxed);
            if short >= self.needed.load(Relaxed) {
                self.is_brisk.store(true, Relaxed);
            }
        }
        is_short
    }

    /// Nobody is awake to run one.
    pub(crate) fn end(&self) {
        // A store only if it changes something: many read this.
        if self.is_brisk.load(Relaxed) {
            self.is_brisk.store(false, Relaxed);
        }
        self.short.store(0, Relaxed);
    }

    /// Looks on, if it may be worth it, until the job of `state` has ended.
    pub(crate) fn wait_for(&self, state: &State) {
        if !self.is_brisk.load(Relaxed) || !state.may_end_soon() {
            return;
        }
        if context::worker_index().is_some() {
            // The thread that the job is to run on may be this one.
            return;
        }
        let start = Instant::now();
        while state.may_end_soon() {
            if start.elapsed() >= PATIENCE {
                break;
            }
            hint::spin_loop();
        }
        if state.has_ended() {
            if self.needed.load(Relaxed) > 1 {
                self.needed.store(1, Relaxed);
            }
        } else {
            // The thread that has the job, or should, is not running: it may
            // share this one's core.
            let needed = (4 * self.needed.load(Relaxed)).min(MOST_SAMPLES);
            self.needed.store(needed, Relaxed);
            self.end();
        }
    }
}
