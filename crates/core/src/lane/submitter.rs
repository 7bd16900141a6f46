//! [`Submitter`]: what a handle submits by. The way in is its `Submit`, in `admission/mod.rs`; from
//! there on `level.rs` has the path of a job.

use std::sync::Arc;
use std::time::Instant;

use stallwatch::Name;
use tokio::runtime::Handle;

use super::scheduler::Scheduler;
use super::{Level, Levels, thread};
use crate::error::CloseReason;
use crate::key::Key;
use crate::priority::Priority;
use crate::task::{Event, thread_number};

/// A lane at one of its priorities, and what its jobs are to have. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Submitter {
    pub(crate) levels: Arc<Levels>,
    pub(crate) priority: Priority,
    /// [`Name::OTHER`] if not known: then it is the caller of the method that submits.
    pub(crate) site: Name,
    /// What is submitted needs no permit of a limited queue.
    pub(crate) is_unlimited: bool,
    pub(crate) deadline: Option<Instant>,
    pub(crate) key: Option<Key>,
}

impl Submitter {
    pub(crate) fn new(levels: Arc<Levels>, priority: Priority) -> Self {
        Self {
            levels,
            priority,
            site: Name::OTHER,
            is_unlimited: false,
            deadline: None,
            key: None,
        }
    }

    pub(crate) fn level(&self) -> &Arc<Level> {
        self.levels.at(self.priority)
    }

    /// The submitter's own site, if it has one, or the caller.
    #[track_caller]
    pub(crate) fn site_or_caller(&self) -> Name {
        match self.site {
            Name::OTHER => Name::caller(),
            own => own,
        }
    }

    /// For a job of that site that the thread of that number submits.
    pub(crate) fn scheduler(&self, submitting_thread: usize, site: Name) -> Scheduler {
        let level = self.levels.shard(self.priority, submitting_thread).clone();
        Scheduler { level, site }
    }

    /// With the earlier one of the two deadlines.
    pub(crate) fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = self.deadline.into_iter().chain([deadline]).min();
        self
    }

    pub(crate) fn without_deadline(mut self) -> Self {
        self.deadline = None;
        self
    }

    /// An error says why no submission is taken any more.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<(), CloseReason> {
        self.levels.lane.close_reason().map_or(Ok(()), Err)
    }

    /// The I/O lane's. An error says that there is none.
    pub(crate) fn io_runtime(&self) -> Result<&Handle, CloseReason> {
        self.levels
            .lane
            .io
            .handle
            .as_ref()
            .ok_or(CloseReason::NoIoLane)
    }

    /// Whether what this thread submits needs no permit.
    pub(crate) fn is_exempt(&self) -> bool {
        self.is_unlimited || thread::is_exempt(&self.levels)
    }

    pub(crate) fn count(&self, event: Event) {
        self.level().counters.count_from(thread_number(), event);
    }
}
