//! The two sets of threads that a CPU lane can run on.
//!
//! The lane's queue, tasks, cancellation and shutdown are the same above both.
//! What a backend does is: come and fetch a job when it is kicked.

pub(crate) mod rayon;
pub(crate) mod runtime;
mod tickets;

use std::sync::Arc;

use crate::builder::ThreadHooks;
use crate::lane::Lane;

#[derive(Debug)]
pub(crate) enum Backend {
    Rayon(rayon::Pool),
    Runtime(runtime::CpuTokio),
}

impl Backend {
    /// A job was pushed: see that a thread comes for it.
    pub(crate) fn kick(&self, lane: &Arc<Lane>) {
        match self {
            Self::Rayon(pool) => pool.kick(lane),
            Self::Runtime(runtime) => runtime.kick(lane),
        }
    }

    /// The ticket that the warden was given may try again.
    pub(crate) fn reissue_ticket(&self, lane: &Arc<Lane>) {
        match self {
            Self::Rayon(pool) => pool.reissue_ticket(lane),
            Self::Runtime(_) => {}
        }
    }

    /// Lets the threads go, once they have nothing left to do. Only the warden
    /// calls it: it may block for a moment.
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

/// What the builder asks of either backend.
pub(crate) struct ThreadSettings {
    pub(crate) threads: usize,
    pub(crate) name: String,
    pub(crate) hooks: ThreadHooks,
}
