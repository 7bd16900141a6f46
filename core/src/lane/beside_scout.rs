//! A level's queue beside its scout's: which of the two a job goes into, and comes from.

use std::sync::Arc;

use stallwatch::Name;

use super::Level;
use super::scout::Scout;
use crate::metrics::call_sites::{Length, Lengths};
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
        let length = lengths.may_start_at_once();
        match length {
            Some(_) => scout.push(job),
            None => {
                lengths.waits();
                self.state().queue.push(job);
            }
        }
        length
    }

    #[cold]
    pub(super) fn wake_scout(&self, length: Length) -> bool {
        self.scout().is_some_and(|scout| scout.wake(self, length))
    }

    #[cold]
    pub(super) fn pop_beside(&self, scout: &Scout) -> Option<Arc<dyn Run>> {
        let queue = &self.state().queue;
        let of_scout = scout.pop_in_turn(|| queue.is_empty());
        if let Some(job) = &of_scout {
            self.lengths(job.site()).was_tried();
        }
        of_scout.or_else(|| {
            let job = queue.pop()?;
            self.lengths(job.site()).has_waited();
            Some(job)
        })
    }
}
