//! [`Polls`]: which polls of a job's parts are those of a job that has ended.
//!
//! One word holds the number of polls that are under way, and a bit for the end of the job. A poll
//! is one of an ended job from its begin or from that end, whichever comes later in the order of
//! the word's changes. The later of the two adds it to a count, and the end of the poll takes it
//! off: so each poll is added once or not at all.
//!
//! **Obligations.** [safety] The count is that of the polls under way of jobs that have ended, once
//! their begins and ends are over: 0 at rest, and never below.

use crate::sync::{AtomicUsize, Ordering::Relaxed};

const ENDED: usize = 1;
const POLL: usize = 2;

#[derive(Default)]
pub(crate) struct Polls(AtomicUsize);

impl Polls {
    /// True if the caller has to add the poll.
    pub(crate) fn begin(&self) -> bool {
        self.0.fetch_add(POLL, Relaxed) & ENDED != 0
    }

    /// True if the caller has to take the poll off.
    pub(crate) fn end(&self) -> bool {
        self.0.fetch_sub(POLL, Relaxed) & ENDED != 0
    }

    /// The job has ended: returns how many polls the caller has to add. Call it once.
    pub(crate) fn end_job(&self) -> usize {
        self.0.fetch_add(ENDED, Relaxed) / POLL
    }
}
