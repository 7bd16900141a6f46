//! [`Handle`]: spawns on both lanes.

mod current;
#[cfg(feature = "hyper")]
mod executor;
mod io_handle;
mod metrics;
mod others;
mod reserve;
mod streams;
mod submit;

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use giveway::{Throttle, Weight};

use crate::lane::Submitter;
use crate::priority::Priority;
pub use current::{EnterGuard, NoCurrentHandle, spawn_cpu, spawn_io};
pub use io_handle::IoHandle;

/// Spawns on the two lanes of a [`CpuRuntime`](crate::CpuRuntime).
///
/// Cheap to clone, and usable from any thread. It does not keep the lane running;
/// the [`CpuRuntime`](crate::CpuRuntime) does.
///
/// | use | for | costs |
/// |---|---|---|
/// | [`spawn_cpu`](Self::spawn_cpu) | a closure that computes | one allocation, one wake-up of a thread of the lane, and up to two of I/O threads |
/// | [`spawn_cpu_with`](Self::spawn_cpu_with) | a closure with a long loop, which asks whether to go on | the same |
/// | [`spawn`](Self::spawn) | a future that computes between its `.await`s | the same, and a box for the future |
/// | [`spawn_io`](Self::spawn_io) | a request, anything with sockets, from inside a job | a hop to the I/O lane and back |
/// | [`io`](Self::io) | the same for what outlives the CPU lane | the same |
/// | [`install`](Self::install) | a closure that borrows, from a plain thread | blocks the caller |
///
/// The guide has the measurements, and the smallest piece of work that is worth an
/// offload: `twolane::guide::cost`.
///
/// The methods are in five groups: [submit](#submit), [reserve](#reserve), [streams](#streams),
/// [other handles](#other-handles), [observe](#observe).
///
/// The methods spawn at the handle's [`Priority`](crate::Priority). It is `Normal`, unless
/// [`with_priority`](Self::with_priority) set another.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let handle = cpu.handle().clone();
/// let text = tokio::spawn(async move { handle.spawn_cpu(|| "done").await.unwrap() });
/// assert_eq!(text.await.unwrap(), "done");
/// # }
/// ```
#[derive(Clone)]
pub struct Handle {
    pub(crate) submitter: Submitter,
}

impl Handle {
    pub(crate) fn new(submitter: Submitter) -> Self {
        Self { submitter }
    }

    pub(crate) fn with(&self, change: impl FnOnce(&mut Submitter)) -> Self {
        let mut changed = self.clone();
        change(&mut changed.submitter);
        changed
    }
}

/// Whether both are handles of the same lane, whatever their priorities, names and deadlines.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// use twolane::{CpuRuntime, Priority};
/// let cpu = CpuRuntime::new().unwrap();
/// assert_eq!(*cpu.handle(), cpu.handle().with_priority(Priority::Low));
/// assert_ne!(cpu.handle(), CpuRuntime::new().unwrap().handle());
/// # }
/// ```
impl PartialEq for Handle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.submitter.levels, &other.submitter.levels)
    }
}

impl Eq for Handle {}

// As for Tokio's handle. No panic can leave a lane half-changed: the lane catches the
// panics of all user code that it calls.
impl UnwindSafe for Handle {}
impl RefUnwindSafe for Handle {}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels = &self.submitter.levels;
        let lane = &levels.lane;
        let niced = Priority::ALL.into_iter().filter(|_| Weight::SUPPORTED);
        let has_io = lane.io.handle.is_some();
        let throttled_to = lane.throttle.as_ref().and_then(Throttle::cores);
        let nice = niced.map(|p| (p, lane.settings.nice(p)));
        f.debug_struct("Handle")
            .field("priority", &self.priority())
            .field("worker_threads", &self.worker_threads())
            .field("running", &levels.running())
            .field("throttled_to_cores", &throttled_to)
            .field("closed", &lane.is_closed())
            .field("io_lane_gone", &has_io.then(|| lane.io.is_gone()))
            .field("nice", &nice.collect::<Vec<_>>())
            .field("nice_refused", &lane.nice_refused.get())
            .field("surroundings", &giveway::surroundings())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    /// The system refuses to raise a nice value only in sandboxes, so this test makes
    /// the error itself.
    #[test]
    fn a_refused_nice_value_is_logged_once_and_shows() {
        let io = tokio::runtime::Runtime::new().unwrap();
        let settings = crate::CpuRuntime::builder().io_handle(io.handle().clone());
        let cpu = settings.build().unwrap();
        let lane = cpu.handle().submitter.levels.lane.clone();
        let refuse = |text: &str| lane.note_refused_nice(16, io::Error::other(text.to_owned()));
        refuse("the first");
        refuse("the second");
        let debug = format!("{cpu:?}");
        assert!(
            debug.contains("nice_refused") && debug.contains("the first"),
            "{debug}"
        );
        assert!(!debug.contains("the second"), "{debug}");
        assert_eq!(cpu.spawn_cpu(|| 1).wait().unwrap(), 1);
    }
}
