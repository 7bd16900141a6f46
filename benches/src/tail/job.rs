//! A job of the load.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;

use super::work::Work;

/// However it ends, the feeder hears of it.
pub struct Job {
    work: Work,
    completed: Arc<AtomicU64>,
    end: Sender<End>,
    done: bool,
}

pub(super) enum End {
    Completed,
    Lost,
}

impl Job {
    pub(super) fn new(work: Work, completed: Arc<AtomicU64>, end: Sender<End>) -> Self {
        Self {
            work,
            completed,
            end,
            done: false,
        }
    }

    pub fn work(&self) -> Work {
        self.work
    }

    pub fn run(mut self) {
        self.work.run();
        self.completed.fetch_add(1, Relaxed);
        self.done = true;
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let end = if self.done { End::Completed } else { End::Lost };
        // The feeder outlives the jobs, unless it has panicked over one.
        let _ = self.end.send(end);
    }
}
