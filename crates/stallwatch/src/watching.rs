//! [`Watching`]: whether anything is watched, and when it was looked at.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

use crate::record;

/// How many runtimes are watched.
static WATCHES: AtomicUsize = AtomicUsize::new(0);

/// Changes with each look of a watch.
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
pub(crate) struct Watching {
    threshold: Duration,
}

impl Watching {
    /// Polls that take as long as `threshold` are of interest.
    pub(crate) fn begin(threshold: Duration) -> Self {
        record::change_thresholds(|all| all.push(threshold));
        WATCHES.fetch_add(1, SeqCst);
        Self { threshold }
    }

    /// To be called at each look: threads then ask for their runtime again.
    pub(crate) fn begin_look(&self) {
        LOOKS.fetch_add(1, Relaxed);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        record::change_thresholds(|all| {
            let own = all.iter().position(|it| *it == self.threshold);
            own.map(|own| all.swap_remove(own));
        });
        WATCHES.fetch_sub(1, SeqCst);
    }
}
