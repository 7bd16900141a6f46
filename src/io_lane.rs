//! The I/O lane: the application's own Tokio runtime, as seen from the CPU lane.
//!
//! Tokio has no API to ask whether a runtime has shut down. We keep a sentinel task
//! on it: the runtime drops the task on shutdown, and the drop sets a flag. (The
//! flags here are `SeqCst` because they are rare, and not worth a proof of less.)

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// Whether the I/O lane runs; see
/// [`Handle::io_lane_state`](crate::Handle::io_lane_state).
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
    /// No task of ours was polled there yet. If it stays so, nobody drives the
    /// runtime: a `current_thread` runtime works only inside its `block_on`.
    NotDriven,
    /// It polled tasks of ours.
    Driven,
    /// It was shut down. Everything that is spawned on either lane ends with
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
        let end = EndOfRuntime(seen.clone());
        let sentinel = handle.spawn(poll_fn(move |_| {
            end.0.polled.store(true, SeqCst);
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

impl Drop for IoLane {
    fn drop(&mut self) {
        self.sentinel.abort();
    }
}

impl fmt::Debug for IoLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IoLane").field(&self.state()).finish()
    }
}

/// Whether the runtime that polls this code is shutting down.
///
/// It drops its tasks one by one, hyper's connections among them, and those
/// who wait for them may still be polled: they would see a broken connection
/// where the runtime is the cause. Such a task shall wait for its own end
/// instead, which tells the truth. Not for hot paths: it spawns a task to see
/// whether that is taken on, which a runtime refuses before it drops the first.
#[cfg(feature = "http-body")]
pub(crate) fn this_runtime_is_closing() -> bool {
    /// Its task's own end tells, not its `JoinHandle`: that is pending for a
    /// caller that has used up Tokio's cooperative budget.
    struct Probe {
        ran: bool,
        refused: Arc<AtomicBool>,
    }
    impl Drop for Probe {
        fn drop(&mut self) {
            if !self.ran {
                self.refused.store(true, SeqCst);
            }
        }
    }

    let Ok(runtime) = Handle::try_current() else {
        return false;
    };
    let refused = Arc::new(AtomicBool::new(false));
    let probe = Probe {
        ran: false,
        refused: refused.clone(),
    };
    drop(runtime.spawn(async move {
        // Named whole, so that it moves in here whole, with its drop.
        let mut probe = probe;
        probe.ran = true;
    }));
    // Of a task that is refused, the future is dropped before `spawn` returns.
    refused.load(SeqCst)
}

/// Dropped with the sentinel task.
struct EndOfRuntime(Arc<Seen>);

impl Drop for EndOfRuntime {
    fn drop(&mut self) {
        self.0.gone.store(true, SeqCst);
    }
}
