//! What blocks the I/O lane?
//!
//! ```text
//! I/O threads:    enter ─ poll ─ leave        enter ─ poll ───────── ...
//!                   │              │            │
//!                   v              v            v
//! records         count: odd     even         odd   odd   odd   odd      (`activity.rs`)
//!                                               ^     ^     ^     ^
//! the watch's thread: a look every 20 ms ───────┴─────┴─────┴─────┘      (`watcher.rs`)
//!                     the kernel's times of the thread  -> own time, computes or blocks
//!                     its own time > threshold          -> a report      (`detect.rs`)
//! ```
//!
//! A thread on the I/O lane does no more than a few stores for each poll. The watch's own
//! thread does the rest: so it reports a stall while it lasts, by name. Names come from
//! [`watch`], [`WatchLayer`], [`SpanWatch`], and from what this crate runs on the I/O lane.
//!
//! It also sends a probe to the I/O lane once a second, and more often while no worker
//! parks. How long that waits until it is polled is the lane's *lag*. Where a probe was polled is a worker of the runtime;
//! a worker that waits in a system call, other than to park, is stuck in code that the
//! watch does not know. One that computes there is only suspected, while a probe waits
//! (`thread.rs`). All of this is slower on a lane that is quiet (`watcher.rs`).

mod detect;
#[cfg(feature = "tower")]
mod layer;
mod limiter;
#[cfg(feature = "tracing-layer")]
mod spans;
#[cfg_attr(
    not(all(
        feature = "stall-stacks",
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    path = "no_stacks.rs"
)]
mod stacks;
mod stall;
mod thread;
mod watched;
mod watcher;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::build_error::BuildError;

#[cfg(feature = "tower")]
pub use layer::{WatchLayer, WatchService};
#[cfg(feature = "tracing-layer")]
pub use spans::SpanWatch;
pub use stall::{Cause, Stall};
pub use watched::{Watched, watch};
pub(crate) use watcher::start;

type OnStall = Arc<dyn Fn(&Stall) + Send + Sync>;

/// How an I/O lane is watched: for [`Builder::watch_io`](crate::Builder::watch_io).
///
/// What it can report depends on what it sees:
///
/// | around the code | computes | blocks |
/// |---|---|---|
/// | [`watch`], [`WatchLayer`](crate::WatchLayer), [`spawn_io`](crate::spawn_io) and the connectors | named | named, with the call |
/// | a span, and [`SpanWatch`](crate::SpanWatch) | named | named, with the call |
/// | nothing | suspected, if all workers are stuck | reported without a name; waiting for a lock is suspected, if the runtime has a single worker and a probe waits |
///
/// A suspicion ([`Stall::is_certain`] is `false`) never has a name. It means that a probe of
/// the watch has waited for longer than the threshold, and that the worker has computed for
/// all that time. It may be one long poll or many short ones. A runtime with several workers
/// polls the probe on another one, so there a single worker that computes in such code is
/// not reported.
///
/// Spans and code without a name are only seen on threads that the watch knows to be workers,
/// since a probe ran there. This takes a fraction of a second on a runtime that is in use.
/// Only Linux tells whether a thread computes or blocks; elsewhere the last row is empty.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use std::time::Duration;
/// use twolane::{CpuRuntime, Watch};
///
/// let watch = Watch::new()
///     .threshold(Duration::from_millis(50))
///     .on_stall(|stall| eprintln!("{stall}"));
/// let cpu = CpuRuntime::builder().watch_io(watch).build().unwrap();
/// # let _ = cpu;
/// # }
/// ```
#[derive(Clone)]
#[must_use = "pass it to `Builder::watch_io`"]
pub struct Watch {
    threshold: Duration,
    on_stall: Option<OnStall>,
}

impl Watch {
    /// A poll may take 25 ms. Stalls are logged as events of `tracing`.
    pub fn new() -> Self {
        Self {
            threshold: Duration::from_millis(25),
            on_stall: None,
        }
    }

    /// Sets how long a poll on the I/O lane may take. Default: 25 ms.
    ///
    /// The watch looks every 20 ms (100 ms on a quiet lane, until a named poll begins), and every 10 ms at a
    /// poll that it has seen twice. So a poll is reported at most 30 ms after it has lasted that
    /// long (110 ms on a quiet lane, if it has no name). One that ends before may be missed.
    ///
    /// At least 10 ms: with less, [`Builder::build`](crate::Builder::build) fails.
    pub fn threshold(mut self, threshold: Duration) -> Self {
        self.threshold = threshold;
        self
    }

    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let (asked, min) = (self.threshold, detect::CLOSE_PACE);
        if asked < min {
            return Err(BuildError::WatchThreshold { asked, min });
        }
        Ok(())
    }

    /// Sets a hook that the watch's thread calls once for each stall, while it lasts.
    ///
    /// It is called for those, too, that are not logged because there were too many. While it
    /// runs, the watch does not look: send what takes long to another thread. A panic of the
    /// hook is logged.
    ///
    /// With the feature `stall-stacks`, it is called later for a stall that has a
    /// [stack](Stall::stack): by up to a second, or by two on a full machine.
    ///
    /// # Shutdown
    ///
    /// The thread is one of the lane's. A [`shutdown`] resolves after the last call has
    /// returned, and no call follows. [`shutdown_timeout`] resolves at its limit, and counts
    /// the thread if it is in a call; [`shutdown_background`] and a drop wait for nothing. A
    /// hook may call each of these. If it also waits for the end, which waits for the hook,
    /// that panics.
    ///
    /// [`shutdown`]: crate::CpuRuntime::shutdown
    /// [`shutdown_timeout`]: crate::CpuRuntime::shutdown_timeout
    /// [`shutdown_background`]: crate::CpuRuntime::shutdown_background
    pub fn on_stall(mut self, hook: impl Fn(&Stall) + Send + Sync + 'static) -> Self {
        self.on_stall = Some(Arc::new(hook));
        self
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("threshold", &self.threshold)
            .field("on_stall", &self.on_stall.is_some())
            .finish()
    }
}
