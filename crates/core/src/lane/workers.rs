//! [`Workers`]: the threads that serve a level, as the lane uses them.
//! [`ThreadSettings`]: the builder's settings for them. `pool/` has the workers.

use std::sync::Arc;
use std::thread;

use rayon_core::ThreadPool;

use super::Level;
use crate::niceness::Niceness;
use crate::panics;
use crate::priority::Priority;

/// The threads that serve a level.
pub(crate) trait Workers: Send + Sync {
    /// Called after a job was queued and a fence: makes sure that a worker pops it.
    fn notify(&self, level: &Arc<Level>);
    /// Runs `f` in the rayon pool while the caller waits, unless it is shut down.
    fn install(&self, f: &mut (dyn FnMut() + Send));
    /// The rayon pool, unless it is shut down. The threads do not end while the caller keeps it.
    fn lend(&self) -> Option<Arc<ThreadPool>>;
    /// Lets the threads end once they have nothing left to do. May block for a moment,
    /// so a thread of the I/O lane must not call it.
    fn shutdown(&self);
}

pub(crate) type SetTokio = dyn Fn(&mut tokio::runtime::Builder) + Send + Sync;

/// The builder's settings for the threads of a lane.
#[derive(Default)]
pub(crate) struct ThreadSettings {
    /// How many, by priority.
    pub(crate) threads: [usize; Priority::ALL.len()],
    pub(crate) name: String,
    /// The user's, which run at the start of each lane thread, in the order in which they were added.
    pub(crate) start_hooks: Vec<Arc<dyn Fn() + Send + Sync>>,
    /// The user's, for the runtime beside the workers.
    pub(crate) set_tokio: Option<Box<SetTokio>>,
    /// Whether a job stops the paused Tokio clock while it is under way. Needs `test-util`.
    pub(crate) holds_paused_clock: bool,
    pub(crate) has_histograms: bool,
    /// Whether short jobs pass long ones (`queue.rs`).
    pub(crate) short_jobs_first: bool,
    /// Of each thread that runs jobs. `None`: the standard library's.
    pub(crate) stack_size: Option<usize>,
    pub(crate) niceness: Niceness,
    /// The nice value that the threads start with.
    pub(crate) base_nice: i32,
}

impl ThreadSettings {
    /// That of the threads of a priority.
    pub(crate) fn nice(&self, priority: Priority) -> i32 {
        self.niceness.weight(priority).nice(self.base_nice)
    }

    pub(crate) fn threads(&self, priority: Priority) -> usize {
        self.threads[priority.index()]
    }

    /// A thread with that stack.
    pub(crate) fn thread(&self) -> thread::Builder {
        let thread = thread::Builder::new();
        match self.stack_size {
            Some(size) => thread.stack_size(size),
            None => thread,
        }
    }

    pub(crate) fn run_start_hooks(&self) {
        for hook in &self.start_hooks {
            panics::run_hook("an `on_thread_start` hook", || hook());
        }
    }

    /// The names of a priority's threads are this and `-INDEX`.
    pub(crate) fn thread_prefix(&self, priority: Priority) -> String {
        format!("{}{}", self.name, ["-high", "", "-low"][priority.index()])
    }
}
