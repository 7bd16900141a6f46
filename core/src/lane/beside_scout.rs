//! A level's queue beside its scout's: which of the two a job goes into, and comes from.

use std::iter;
use std::sync::Arc;

use stallwatch::Name;

use super::Level;
use super::scout::Scout;
use crate::metrics::call_sites::{Length, Lengths};
use crate::sync::{Ordering::SeqCst, fence};
use crate::task::Run;

// Out of line: most lanes have no scout.
impl Level {
    pub(crate) fn scout(&self) -> Option<&Scout> {
        self.state().scout.as_deref()
    }

    /// Whether the jobs of that site are long, for the scout.
    pub(crate) fn lengths(&self, site: Name) -> &Lengths {
        self.state().sites.lengths(site)
    }

    /// Pushes the job to the scout's queue, or to the level's own. Returns what is known of its
    /// length in the first case.
    #[cold]
    pub(super) fn push_beside(&self, scout: &Scout, job: Arc<dyn Run>) -> Option<Length> {
        // Not this level's own site: a job has that of its submission.
        let lengths = self.lengths(job.site());
        if lengths.passes() {
            lengths.enters_scouts();
            scout.push(job);
            return Some(lengths.length());
        }
        lengths.waits();
        self.state().queue.push(job);
        None
    }

    #[cold]
    pub(super) fn wake_scout(&self, length: Length) -> bool {
        self.scout().is_some_and(|scout| scout.wake(self, length))
    }

    /// For the scout: a job of its queue.
    pub(crate) fn pop_for_scout(&self, scout: &Scout) -> Option<Arc<dyn Run>> {
        let mut has_moved = false;
        let job =
            iter::from_fn(|| scout.pop()).find_map(|job| self.keep_or_move(job, &mut has_moved));
        if has_moved {
            fence(SeqCst);
            if let Some(workers) = self.workers() {
                workers.notify(self);
            }
            self.close_if_late();
        }
        job
    }

    /// For a worker.
    #[cold]
    pub(super) fn pop_beside(&self, scout: &Scout) -> Option<Arc<dyn Run>> {
        let queue = &self.state().queue;
        let in_turn = iter::from_fn(|| scout.pop_in_turn(|| queue.is_empty()));
        let of_scout = { in_turn }.find_map(|job| self.keep_or_move(job, &mut false));
        of_scout.or_else(|| {
            let (job, yielded) = queue.pop_noting()?;
            if !yielded {
                self.lengths(job.site()).has_waited();
            }
            Some(job)
        })
    }

    /// A job has come out of the scout's queue. If its site is known to be long by now, or others
    /// of its site have gone before, it goes into the level's own.
    fn keep_or_move(&self, job: Arc<dyn Run>, has_moved: &mut bool) -> Option<Arc<dyn Run>> {
        let lengths = self.lengths(job.site());
        let kept = match lengths.may_start() {
            true => Some(job),
            false => {
                lengths.waits();
                self.state().queue.push(job);
                *has_moved = true;
                None
            }
        };
        // Now: one that is queued meanwhile goes behind it, by the way of the scout's queue.
        lengths.has_left_scouts();
        kept
    }
}
