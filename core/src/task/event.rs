//! [`Event`]: what a level counts of its jobs, and [`Page`], where a thread counts it.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::error::CloseReason;

/// The events that a level counts.
#[derive(Clone, Copy)]
pub(crate) enum Event {
    Submitted,
    Rejected,
    /// A step began.
    Begun,
    /// A step ended without an output, and the job is about to be suspended.
    Suspended,
    /// A job that was suspended, or about to be, is going to be queued.
    Woken,
    Completed,
    Panicked,
    Cancelled,
    Expired,
    /// The lane itself closed the job.
    Dropped,
    /// Counted in addition to `Cancelled`, `Expired` or `Dropped`: where the job was.
    ClosedQueued,
    ClosedSuspended,
}

impl Event {
    pub(crate) fn of_close(cause: CloseReason) -> Self {
        match cause {
            CloseReason::Cancelled => Self::Cancelled,
            CloseReason::Expired => Self::Expired,
            _ => Self::Dropped,
        }
    }
}

const EVENTS: usize = Event::ClosedSuspended as usize + 1;

/// One counter for each [`Event`].
///
/// An increment is `Release` and a read is `Acquire`. So a reader that sees an event also sees
/// the events that led to it.
#[derive(Default)]
pub(crate) struct Page([AtomicU64; EVENTS]);

impl Page {
    pub(crate) fn add(&self, event: Event) {
        self.0[event as usize].fetch_add(1, Release);
    }

    /// Only for a thread that is the only one to write to this page.
    #[inline]
    pub(super) fn add_alone(&self, event: Event) {
        let count = &self.0[event as usize];
        count.store(count.load(Relaxed) + 1, Release);
    }

    pub(crate) fn get(&self, event: Event) -> u64 {
        self.0[event as usize].load(Acquire)
    }
}
