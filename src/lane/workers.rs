//! [`Workers`]: the threads that serve a level, as the lane sees them, and what their
//! builder asks of them. `pool/` has the two kinds.

use std::io;
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::Level;
use super::hooks::ThreadHooks;
use crate::backend::Backend;
use crate::os::nice::Niceness;
use crate::priority::Priority;
use crate::task::Run;

pub(crate) trait Workers: Send + Sync {
    /// Queues a new job, or makes a task of its own of it.
    fn submit(&self, level: &Level, job: Arc<dyn Run>) -> Option<JoinHandle<()>>;
    /// A job was queued, and a fence followed: see that a worker comes for it.
    fn notify(&self, level: &Level);
    /// The same for all that is queued.
    fn notify_all(&self, level: &Level) {
        self.notify(level);
    }
    /// Runs `f` in the rayon pool while the caller waits. False if there is none, or it
    /// is shut down.
    fn install(&self, _f: &mut (dyn FnMut() + Send)) -> bool {
        false
    }
    /// Lets the threads go, once they have nothing left to do. It may block for
    /// a moment: not for threads of the I/O lane.
    fn shutdown(&self);
    fn is_shut_down(&self) -> bool;
}

/// What the builder asks of the threads of a lane.
pub(crate) struct ThreadSettings {
    pub(crate) backend: Backend,
    /// Starts the threads of a level, and waits until each has run its start hook.
    pub(crate) start: fn(&Level) -> io::Result<Arc<dyn Workers>>,
    /// Of each priority.
    pub(crate) threads: usize,
    pub(crate) name: String,
    pub(crate) hooks: ThreadHooks,
    /// Of the runtimes that jobs are submitted in.
    #[cfg(feature = "test-util")]
    pub(crate) holds_paused_clock: bool,
    /// By priority.
    pub(crate) niceness: [Niceness; Priority::ALL.len()],
}

impl ThreadSettings {
    /// `NAME-0` for Normal, `NAME-high-0`, `NAME-low-0` for the others.
    pub(crate) fn thread_name(&self, priority: Priority, index: usize) -> String {
        let name = &self.name;
        match priority {
            Priority::High => format!("{name}-high-{index}"),
            Priority::Normal => format!("{name}-{index}"),
            Priority::Low => format!("{name}-low-{index}"),
        }
    }
}
