//! The I/O lane: the application's own Tokio runtime, as the CPU lane sees it.
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
    pub(crate) handle: Handle,
    gone: Arc<AtomicBool>,
    sentinel: AbortHandle,
}

impl IoLane {
    /// `close` is called when the runtime has shut down. It must not block.
    pub(crate) fn watch(handle: Handle, close: impl Fn() + Send + 'static) -> Self {
        let gone = Arc::new(AtomicBool::new(false));
        let flag = gone.clone();
        let end = on_drop(move || {
            flag.store(true, SeqCst);
            close();
        });
        let sentinel = handle.spawn(async move {
            let _until_the_runtime_ends = end;
            pending::<()>().await;
        });
        let sentinel = sentinel.abort_handle();
        Self {
            handle,
            gone,
            sentinel,
        }
    }

    /// Makes this thread's sockets, timers and Tokio tasks belong to it. (In the model it does nothing:
    /// there, all threads are one for Tokio.)
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(SeqCst)
    }
}

/// Enters the context of `runtime`, for a destructor. `None` while this thread ends:
/// [`Handle::enter`] would panic.
pub(crate) fn enter_for_drop(runtime: &Handle) -> Option<EnterGuard<'_>> {
    match Handle::try_current() {
        Err(error) if error.is_thread_local_destroyed() => None,
        _ => Some(runtime.enter()),
    }
}

impl Drop for IoLane {
    fn drop(&mut self) {
        self.sentinel.abort();
    }
}
