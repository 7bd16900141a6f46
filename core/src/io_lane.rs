//! The I/O lane: the application's own Tokio runtime, as the CPU lane sees it.
//!
//! Tokio has no API to ask whether a runtime has shut down. We keep a sentinel task on
//! it: the runtime drops the task on shutdown, and the drop sets a flag. (The flags
//! here are `SeqCst` because they are rarely used; a weaker ordering is not worth its
//! proof.)

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;

use tokio::runtime::{EnterGuard, Handle};
use tokio::task::AbortHandle;

use crate::guard::on_drop;

/// Whether the I/O lane runs.
///
/// Returned by [`Handle::io_lane_state`](crate::Handle::io_lane_state).
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// assert_ne!(cpu.handle().io_lane_state(), twolane::IoLaneState::Gone);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IoLaneState {
    /// The runtime has not polled a task of the lane yet.
    ///
    /// If this does not change, no thread drives the runtime: a `current_thread`
    /// runtime works only inside its `block_on`.
    NotDriven,
    /// The runtime has polled a task of the lane.
    Driven,
    /// The runtime was shut down.
    ///
    /// All work that is spawned on either lane ends with
    /// [`JoinError::is_io_runtime_gone`](crate::JoinError::is_io_runtime_gone).
    Gone,
}

pub(crate) struct IoLane {
    handle: Handle,
    seen: Arc<Seen>,
    sentinel: AbortHandle,
}

#[derive(Default)]
struct Seen {
    polled: AtomicBool,
    gone: AtomicBool,
}

impl IoLane {
    pub(crate) fn watch(handle: Handle) -> Self {
        let seen = Arc::new(Seen::default());
        let (polled, gone) = (seen.clone(), seen.clone());
        let end = on_drop(move || gone.gone.store(true, SeqCst));
        let sentinel = handle.spawn(poll_fn(move |_| {
            let _until_the_runtime_ends = &end;
            polled.polled.store(true, SeqCst);
            Poll::<()>::Pending
        }));
        Self {
            handle,
            seen,
            sentinel: sentinel.abort_handle(),
        }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.seen.gone.load(SeqCst)
    }

    pub(crate) fn state(&self) -> IoLaneState {
        if self.is_gone() {
            IoLaneState::Gone
        } else if self.seen.polled.load(SeqCst) {
            IoLaneState::Driven
        } else {
            IoLaneState::NotDriven
        }
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
