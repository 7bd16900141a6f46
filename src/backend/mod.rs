//! The two sets of threads that a level of a CPU lane can run on.
//!
//! Tasks, cancellation and shutdown are the same above both. Rayon's workers fetch
//! jobs from the lane's queue; on a runtime each job is a Tokio task.

mod drain;
mod hooks;
mod kind;
pub(crate) mod rayon;
pub(crate) mod runtime;
mod tickets;

use std::io;

use crate::lane::Level;
use crate::os::weight::Weight;
use crate::priority::Priority;
pub(crate) use hooks::ThreadHooks;
pub use kind::Backend;

#[derive(Debug)]
pub(crate) enum Threads {
    Rayon(rayon::Pool),
    Runtime(runtime::CpuTokio),
}

impl Threads {
    /// Starts the threads and waits until each has run its start hook.
    pub(crate) fn start(level: &Level) -> io::Result<Self> {
        match level.lane().settings.backend {
            Backend::Rayon => rayon::Pool::start(level).map(Self::Rayon),
            Backend::Runtime => runtime::CpuTokio::start(level).map(Self::Runtime),
        }
    }

    /// A job was pushed, and a fence followed: see that a thread comes for it.
    pub(crate) fn kick(&self, level: &Level) {
        match self {
            Self::Rayon(pool) => pool.kick(level),
            Self::Runtime(runtime) => {
                if let Some(job) = level.pop() {
                    drop(runtime.spawn(level, job));
                }
            }
        }
    }

    /// Lets the threads go, once they have nothing left to do. It may block for
    /// a moment: not for threads of the I/O lane.
    pub(crate) fn retire(&self) {
        match self {
            Self::Rayon(pool) => pool.retire(),
            Self::Runtime(runtime) => runtime.retire(),
        }
    }

    pub(crate) fn is_retired(&self) -> bool {
        match self {
            Self::Rayon(pool) => pool.is_retired(),
            Self::Runtime(runtime) => runtime.is_retired(),
        }
    }
}

/// What the builder asks of the threads of a lane.
pub(crate) struct ThreadSettings {
    pub(crate) backend: Backend,
    /// Of each priority.
    pub(crate) threads: usize,
    pub(crate) name: String,
    pub(crate) hooks: ThreadHooks,
    /// Of the runtimes that jobs are submitted in.
    #[cfg(feature = "test-util")]
    pub(crate) holds_paused_clock: bool,
    /// By priority.
    pub(crate) weights: [Weight; Priority::ALL.len()],
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
