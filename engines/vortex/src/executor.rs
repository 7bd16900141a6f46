//! [`on_lane`]: vortex's executor trait on a lane.
//!
//! Jobs are detached: vortex hears of their end by a channel of its own, which each of its
//! closures and futures holds. What a lane drops unfinished closes that channel.

use std::sync::Arc;

use futures::future::BoxFuture;
use twolane_core::{Handle, Task, adapters};
use vortex_io::runtime::{AbortHandle, AbortHandleRef, Executor};
use vortex_io::session::RuntimeSessionExt;
use vortex_session::{SessionExt, SessionVar, VortexSession};

/// Has all that `session` spawns run on the lanes of `cpu`, at its priority.
///
/// It sets the session's runtime, for all clones of the session: files that they open afterwards,
/// their scans and their writers. The session keeps what this makes; it does not keep the lane
/// running.
///
/// What vortex spawns takes no permit of the queue's [limit](twolane_core::Builder::queue_limit)
/// and has no deadline: vortex bounds the splits that run at a time, and panics if its runtime
/// refuses one. [`run_on`](crate::run_on) and [`stream_on`](crate::stream_on) take one permit for
/// the whole operation, and keep its deadline.
///
/// # Errors
///
/// None here. See [the crate](crate#errors) for a lane that ends.
///
/// # Cost
///
/// A job of the lane for each split of a scan, and for each chunk that a writer compresses.
///
/// # Examples
///
/// ```
/// use twolane_vortex::on_lane;
/// use vortex::VortexSessionDefault;
/// use vortex::session::VortexSession;
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cpu = twolane_core::CpuRuntime::new()?;
/// let session = on_lane(VortexSession::default(), cpu.handle());
/// # Ok(()) }
/// ```
#[track_caller]
pub fn on_lane(session: VortexSession, cpu: &Handle) -> VortexSession {
    let cpu = adapters::at(cpu, std::panic::Location::caller()).without_limit();
    let cpu = adapters::without_deadline(&cpu);
    let executor = Arc::new(LaneExecutor { cpu });
    let weak = Arc::downgrade(&executor);
    session.get_mut::<Lane>().0 = Some(executor);
    session.with_handle(vortex_io::runtime::Handle::new(weak))
}

#[derive(Debug)]
struct LaneExecutor {
    cpu: Handle,
}

/// Keeps the executor, of which the session's runtime handle has a weak reference alone.
#[derive(Clone, Debug, Default)]
struct Lane(Option<Arc<LaneExecutor>>);

impl SessionVar for Lane {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

impl Executor for LaneExecutor {
    fn spawn(&self, future: BoxFuture<'static, ()>) -> AbortHandleRef {
        detach(self.cpu.spawn(future))
    }

    fn spawn_io(&self, future: BoxFuture<'static, ()>) -> AbortHandleRef {
        // Not `cpu.spawn_io`: a request that is refused would panic in its awaiter.
        detach(self.cpu.io().spawn(future))
    }

    fn spawn_cpu(&self, task: Box<dyn FnOnce() + Send>) -> AbortHandleRef {
        detach(self.cpu.spawn_cpu(task))
    }

    fn spawn_blocking_io(&self, task: Box<dyn FnOnce() + Send>) -> AbortHandleRef {
        let task = self.cpu.io().runtime().spawn_blocking(task);
        Box::new(Blocking(task.abort_handle()))
    }
}

/// Quietly: the awaiter of a job that a shutdown drops learns of it, and a file's reads are a
/// job that has no end before.
fn detach(task: Task<()>) -> AbortHandleRef {
    let abort = Job(task.abort_handle());
    adapters::detach_quietly(task);
    Box::new(abort)
}

struct Job(twolane_core::AbortHandle);

impl AbortHandle for Job {
    fn abort(self: Box<Self>) {
        self.0.abort();
    }
}

struct Blocking(tokio::task::AbortHandle);

impl AbortHandle for Blocking {
    fn abort(self: Box<Self>) {
        self.0.abort();
    }
}
