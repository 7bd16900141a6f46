//! The I/O lane: the application's own Tokio runtime, as the CPU lane sees it.
//!
//! Tokio has no API to ask whether a runtime has shut down. We keep a sentinel task on
//! it: the runtime drops the task on shutdown, and the drop sets a flag. (It is `SeqCst`
//! because it is rarely used; a weaker ordering is not worth its proof.)

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
    pub(crate) fn watch(handle: Handle) -> Self {
        let gone = Arc::new(AtomicBool::new(false));
        let end = gone.clone();
        let sentinel = at_end_of(&handle, move || end.store(true, SeqCst));
        Self {
            handle,
            gone,
            sentinel,
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(SeqCst)
    }
}

/// Calls `f` when `runtime` shuts down, or the returned task is aborted.
pub(crate) fn at_end_of(runtime: &Handle, f: impl FnMut() + Send + 'static) -> AbortHandle {
    let end = on_drop(f);
    let sentinel = runtime.spawn(async move {
        let _until_the_runtime_ends = end;
        pending::<()>().await;
    });
    sentinel.abort_handle()
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
