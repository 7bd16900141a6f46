//! Whether a body or a response broke because its runtime shuts down.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::coop;

/// Whether the runtime that polls this code is shutting down.
///
/// A runtime that shuts down drops its tasks one by one, hyper's connections among
/// them. Tasks that wait for a dropped connection may still be polled. They see a
/// broken connection, although the runtime is the cause. Such a task must not return
/// that error, but stay pending. The runtime drops it next, and that drop reports the
/// cause.
///
/// Not for hot paths: on a runtime of several threads this spawns a task as a probe. Such a
/// runtime refuses new tasks before it drops the first one, and Tokio (1.54) has no other
/// sign of that: the figures of [`Handle::metrics`] do not show it, and a sentinel task may
/// be dropped after the connection. A runtime of one thread polls no task after it has
/// dropped the first one, so the code that asks is not in a runtime that closes.
pub(crate) fn this_runtime_is_closing() -> bool {
    let runtime = match Handle::try_current() {
        Ok(runtime) if runtime.runtime_flavor() != RuntimeFlavor::CurrentThread => runtime,
        _ => return false,
    };
    // The runtime has cancelled a refused task before `spawn` returns.
    let mut probe = coop::unconstrained(runtime.spawn(async {}));
    let mut cx = Context::from_waker(Waker::noop());
    matches!(Pin::new(&mut probe).poll(&mut cx), Poll::Ready(Err(_)))
}
