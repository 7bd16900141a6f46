//! The I/O lane: the application's own Tokio runtime, as the CPU lane sees it.
//!
//! Tokio has no API to ask whether a runtime has shut down. We keep a sentinel task on
//! it: the runtime drops the task on shutdown, and the drop sets a flag. (It is `SeqCst`
//! because it is rarely used; a weaker ordering is not worth its proof.)

#[cfg(all(feature = "net", target_os = "linux"))]
mod relay;
#[cfg(not(all(feature = "net", target_os = "linux")))]
#[path = "no_relay.rs"]
mod relay;
#[cfg(all(feature = "net", target_os = "linux"))]
mod wake_list;

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use tokio::runtime::{EnterGuard, Handle};
use tokio::task::AbortHandle;

use crate::guard::on_drop;

pub(crate) use relay::Relay;

pub(crate) struct IoLane {
    handle: Handle,
    gone: Arc<AtomicBool>,
    sentinel: AbortHandle,
    /// And its task.
    relay: Option<(Arc<Relay>, AbortHandle)>,
}

/// Why there is no relay.
#[cfg_attr(
    not(all(feature = "net", target_os = "linux")),
    expect(dead_code, reason = "nothing fails where there is none")
)]
pub(crate) enum NoRelay {
    /// The runtime has no I/O driver.
    NoDriver,
    Os(io::Error),
}

impl IoLane {
    pub(crate) fn watch(handle: Handle) -> Self {
        let gone = Arc::new(AtomicBool::new(false));
        let end = gone.clone();
        let end = on_drop(move || end.store(true, SeqCst));
        let sentinel = handle.spawn(async move {
            let _until_the_runtime_ends = end;
            pending::<()>().await;
        });
        Self {
            handle,
            gone,
            sentinel: sentinel.abort_handle(),
            relay: None,
        }
    }

    /// Starts the relay, where there is one.
    pub(crate) fn start_relay(&mut self) -> Result<(), NoRelay> {
        if let Some(relay) = Relay::new(&self.handle)? {
            let task = self.handle.spawn(relay.clone().run());
            self.relay = Some((relay, task.abort_handle()));
        }
        Ok(())
    }

    pub(crate) fn relay(&self) -> Option<&Relay> {
        self.relay.as_ref().map(|(relay, _)| &**relay)
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
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
        if let Some((_, task)) = &self.relay {
            task.abort();
        }
    }
}
