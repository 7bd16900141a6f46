//! A place in the queue of a priority that has a limit, as its holders have it.

use std::sync::{Arc, Weak};

use super::{Lane, Level};

/// Given back when the last of its holders lets go: the job that was let in by
/// it, and whatever that job has submitted.
#[derive(Clone)]
pub(crate) struct Place(Arc<Taken>);

struct Taken {
    level: Level,
}

impl Place {
    /// One that the level's gate has given.
    pub(crate) fn new(level: Level) -> Self {
        Self(Arc::new(Taken { level }))
    }

    pub(crate) fn downgrade(&self) -> WeakPlace {
        WeakPlace(Arc::downgrade(&self.0))
    }

    pub(crate) fn is_in(&self, lane: &Arc<Lane>) -> bool {
        Arc::ptr_eq(self.0.level.lane(), lane)
    }
}

/// For one who does not hold the place, but may go in by it as long as somebody
/// does: what a job does on the I/O lane may go on for long after the job.
#[derive(Clone)]
pub(crate) struct WeakPlace(Weak<Taken>);

impl WeakPlace {
    pub(crate) fn upgrade(&self) -> Option<Place> {
        self.0.upgrade().map(Place)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(gate) = self.level.gate() {
            gate.leave();
        }
    }
}
