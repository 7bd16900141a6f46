//! [`Watching`]: what a watch does with all threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use crate::record::{self, Record};

/// How many runtimes are watched.
static WATCHES: AtomicUsize = AtomicUsize::new(0);

/// Changes with each look of a watch, and as one begins.
static LOOKS: AtomicUsize = AtomicUsize::new(1);

/// Returns whether any runtime of this process is watched. If not, [`enter`](crate::enter) and
/// [`Pool::enter`](crate::Pool::enter) do nothing. One load.
///
/// # Examples
///
/// ```
/// assert!(!stallwatch::is_watched());
/// ```
#[inline]
pub fn is_watched() -> bool {
    WATCHES.load(Relaxed) > 0
}

pub(crate) fn looks() -> usize {
    LOOKS.load(Relaxed)
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
