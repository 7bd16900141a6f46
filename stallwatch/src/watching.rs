//! [`Watching`]: what a watch does with all threads.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use Ordering::{Relaxed, SeqCst};

use crate::record::{self, Record};

/// How many runtimes are watched.
static WATCHES: AtomicUsize = AtomicUsize::new(0);

/// Changes with each look of a watch, and as one begins.
static LOOKS: AtomicUsize = AtomicUsize::new(1);

/// Whether a watch rests, to be woken by the next thread that enters something.
static IS_RESTING: AtomicBool = AtomicBool::new(false);
static RESTING: Mutex<Vec<Thread>> = Mutex::new(Vec::new());

fn resting() -> MutexGuard<'static, Vec<Thread>> {
    RESTING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[inline]
pub(crate) fn is_watched() -> bool {
    WATCHES.load(Relaxed) > 0
}

pub(crate) fn looks() -> usize {
    LOOKS.load(Relaxed)
}

#[inline]
pub(crate) fn wake() {
    if IS_RESTING.load(Relaxed) {
        wake_all();
    }
}

/// At most once for each rest of a watch.
#[cold]
fn wake_all() {
    if IS_RESTING.swap(false, Relaxed) {
        let watches = mem::take(&mut *resting());
        watches.iter().for_each(Thread::unpark);
    }
}

/// The records are written while one of these lives.
#[derive(Debug)]
pub(crate) struct Watching(());

impl Watching {
    pub(crate) fn begin() -> Self {
        WATCHES.fetch_add(1, SeqCst);
        LOOKS.fetch_add(1, SeqCst);
        Self(())
    }

    /// To be called at each look: threads then ask for their runtime again.
    pub(crate) fn begin_look(&self) {
        LOOKS.fetch_add(1, Relaxed);
    }

    /// Waits for so long. Returns `true` before that if a thread enters something. (If that
    /// thread does not see the flag yet, one of the next ones does, or the time is up.)
    pub(crate) fn rest(&self, at_most: Duration) -> bool {
        let id = thread::current().id();
        resting().push(thread::current());
        IS_RESTING.store(true, Relaxed);
        thread::park_timeout(at_most);
        let mut resting = resting();
        let others = resting.len();
        resting.retain(|watch| watch.id() != id);
        resting.len() == others
    }

    /// Changes whenever [`records`](Self::records) does.
    pub(crate) fn version(&self) -> usize {
        record::version()
    }

    pub(crate) fn records(&self) -> Vec<Arc<Record>> {
        record::all()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        WATCHES.fetch_sub(1, SeqCst);
    }
}
