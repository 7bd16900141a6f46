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
        self.first_to_start(|| scout.pop())
    }

    /// For a worker.
    #[cold]
    pub(super) fn pop_beside(&self, scout: &Scout) -> Option<Arc<dyn Run>> {
        let queue = &self.state().queue;
        let of_scout = self.first_to_start(|| scout.pop_in_turn(|| queue.is_empty()));
        if of_scout.is_some() {
            scout.has_passed();
            if !queue.is_empty() {
                // What is there may have been put there for this worker, by itself or by another
                // one that saw it active.
                self.notify_workers();
            }
            return of_scout;
        }
        let (job, yielded) = queue.pop_noting()?;
        if !yielded {
            self.lengths(job.site()).has_waited();
        }
        Some(job)
    }

    /// The first job that `pop` gives and that may start. The others go into the level's own queue.
    fn first_to_start(&self, pop: impl FnMut() -> Option<Arc<dyn Run>>) -> Option<Arc<dyn Run>> {
        let mut has_moved = false;
        let first = iter::from_fn(pop).find_map(|job| self.keep_or_move(job, &mut has_moved));
        if has_moved {
            self.notify_workers();
            self.close_if_late();
        }
        first
    }

    /// For jobs in the level's own queue.
    fn notify_workers(&self) {
        fence(SeqCst);
        if let Some(workers) = self.workers() {
            workers.notify(self);
        }
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
