//! The I/O lane: the application's own Tokio runtime, as the CPU lane sees it. Or none: then a job is
//! in the context of no runtime, and what needs one is refused.
//!
//! Tokio has no API to ask whether a runtime has shut down. We keep a sentinel task on
//! it: the runtime drops the task on shutdown, and the drop sets a flag and closes the lane. (The
//! flag is `SeqCst` because it is rarely used; a weaker ordering is not worth its proof.)

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use tokio::runtime::{EnterGuard, Handle};
use tokio::task::AbortHandle;

use crate::guard::on_drop;

pub(crate) struct IoLane {
    /// `None`: the CPU lane has none.
    pub(crate) handle: Option<Handle>,
    /// True if there is none, too.
    gone: Arc<AtomicBool>,
    sentinel: Option<AbortHandle>,
}

impl IoLane {
    /// `close` is called when the runtime has shut down. It must not block.
    pub(crate) fn watch(handle: Option<Handle>, close: impl Fn() + Send + 'static) -> Self {
        let gone = Arc::new(AtomicBool::new(handle.is_none()));
        let flag = gone.clone();
        let start_sentinel = |handle: &Handle| {
            let end = on_drop(move || {
                flag.store(true, SeqCst);
                close();
            });
            let sentinel = handle.spawn(async move {
                let _until_the_runtime_ends = end;
                pending::<()>().await;
            });
            sentinel.abort_handle()
        };
        let sentinel = handle.as_ref().map(start_sentinel);
        Self {
            handle,
            gone,
            sentinel,
        }
    }

    /// Makes this thread's sockets, timers and Tokio tasks belong to it. (In the model it does nothing:
    /// there, all threads are one for Tokio.)
    pub(crate) fn enter(&self) -> Option<EnterGuard<'_>> {
        self.handle.as_ref().map(Handle::enter)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(SeqCst)
    }
}

/// Enters the context of `runtime`, for a destructor. `None` while this thread ends:
/// [`Handle::enter`] would panic.
pub(crate) fn enter_for_drop(runtime: Option<&Handle>) -> Option<EnterGuard<'_>> {
    match Handle::try_current() {
        Err(error) if error.is_thread_local_destroyed() => None,
        _ => runtime.map(Handle::enter),
    }
}

impl Drop for IoLane {
    fn drop(&mut self) {
        self.sentinel.iter().for_each(AbortHandle::abort);
    }
}
