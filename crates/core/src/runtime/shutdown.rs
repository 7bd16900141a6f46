//! [`Shutdown`]: the wait for the end of a lane. (What ends it is in `lane/mod.rs` and
//! `lane/control.rs`.)

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::lane::{Lane, thread};
use crate::remaining::Remaining;
use crate::task::block_on;

/// A future that waits for the end of a shutdown.
///
/// It resolves to what has not ended: nothing ([`Remaining::is_empty`]), except for
/// [`CpuRuntime::shutdown_timeout`](crate::CpuRuntime::shutdown_timeout). The shutdown goes on if
/// the future is dropped.
///
/// # Panics
///
/// Polling it again after it is ready panics. So does polling it in a hook of the lane's watch
/// ([`Watch::on_stall`](stallwatch::Watch::on_stall)): the shutdown waits for that hook.
///
/// # Cancel safety
///
/// The lane closed when this future was made. Dropping it loses nothing.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let mut shutdown: twolane::future::Shutdown = cpu.shutdown();
/// tokio::select! {
///     left = &mut shutdown => assert!(left.is_empty()),
///     _ = tokio::signal::ctrl_c() => eprintln!("a second ctrl-c: the running jobs are not awaited"),
/// }
/// # }
/// ```
#[must_use = "the lane has closed; await this to know when its last job has ended"]
pub struct Shutdown {
    pub(super) left: oneshot::Receiver<Remaining>,
    pub(super) lane: Arc<Lane>,
}

impl Shutdown {
    /// Blocks a plain thread until the future resolves.
    ///
    /// See [`Task::wait`](crate::Task::wait) for what a plain thread is.
    ///
    /// # Panics
    ///
    /// On a thread of the lane that shuts down: the thread would wait for itself. If it has to wait,
    /// also on a thread that polls tasks of a Tokio runtime. The lane is closed all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert!(cpu.shutdown().wait().is_empty());
    /// ```
    #[track_caller]
    pub fn wait(self) -> Remaining {
        assert!(
            !thread::is_of_lane(&self.lane),
            "`Shutdown::wait` on a thread of the CPU lane that shuts down: it would wait \
             for itself. Call `shutdown_background` there, or wait on another thread"
        );
        block_on(self)
    }
}

impl Future for Shutdown {
    type Output = Remaining;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Remaining> {
        assert!(
            self.lane.io_watch.thread.get() != Some(&std::thread::current().id()),
            "a hook of `Watch::on_stall` waits for its lane's shutdown, which waits for the hook. \
             Call `shutdown_background` there, or wait on another thread"
        );
        let left = Pin::new(&mut self.left).poll(cx);
        left.map(Result::unwrap_or_default)
    }
}

debug_by_name!(Shutdown);
