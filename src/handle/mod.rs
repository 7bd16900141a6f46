//! [`Handle`]: everything that spawns.

mod current;
mod io;
mod spawn;

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::backend::Backend;
use crate::io_lane::IoLaneState;
use crate::lane::Level;
use crate::metrics::Metrics;
use crate::os::nice;
use crate::priority::Priority;
pub use current::{EnterGuard, NoCurrentHandle, in_io_context, spawn_cpu, spawn_io};

/// Spawns on the two lanes of a [`CpuRuntime`](crate::CpuRuntime).
///
/// Cheap to clone, and usable from any thread. It does not keep the lane
/// running: that is the `CpuRuntime`'s to decide.
///
/// | use | for | costs |
/// |---|---|---|
/// | [`spawn_cpu`](Self::spawn_cpu) | a closure that computes | two thread wake-ups, one allocation |
/// | [`spawn_cpu_with`](Self::spawn_cpu_with) | the same, and it asks whether it is still wanted | the same |
/// | [`spawn`](Self::spawn) | a future that computes between its `.await`s | the same, and a box for the future |
/// | [`spawn_io`](Self::spawn_io) | a request, anything with sockets, from inside a job | a hop to the I/O lane and back |
/// | [`in_io_context`](Self::in_io_context) | making I/O objects that others will poll | nothing; no hop |
/// | [`install`](Self::install) | a closure that borrows, from a plain thread | blocks the caller |
///
/// What that comes to, and from what size on a piece of work is worth it, stands
/// below.
///
/// They go to the handle's [`Priority`], which is `Normal` unless
/// [`with_priority`](Self::with_priority) made it.
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let handle = cpu.handle();
/// let text = tokio::spawn(async move { handle.spawn_cpu(|| "done").await.unwrap() });
/// assert_eq!(text.await.unwrap(), "done");
/// # }
/// ```
///
#[doc = include_str!("../../docs/cost.md")]
#[derive(Clone)]
pub struct Handle {
    level: Level,
}

impl Handle {
    pub(crate) fn new(level: Level) -> Self {
        Self { level }
    }

    pub(crate) fn level(&self) -> &Level {
        &self.level
    }

    /// The same lane at another [`Priority`]: what is spawned by the handle
    /// that this returns runs on that priority's threads. They start with the
    /// first job.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::Priority;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let urgent = cpu.handle().with_priority(Priority::High);
    /// let nested = urgent.spawn(async {
    ///     // Without a handle, a job spawns at its own priority.
    ///     twolane::spawn_cpu(|| twolane::Handle::current().priority()).await.unwrap()
    /// });
    /// assert_eq!(nested.await.unwrap(), Priority::High);
    /// # }
    /// ```
    pub fn with_priority(&self, priority: Priority) -> Self {
        Self::new(Level::new(self.level.lane().clone(), priority))
    }

    /// At which priority this handle spawns.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.handle().priority(), twolane::Priority::Normal);
    /// ```
    pub fn priority(&self) -> Priority {
        self.level.priority()
    }

    /// How many threads the CPU lane has, at each priority that is in use.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::builder().threads(3).build().unwrap();
    /// assert_eq!(cpu.handle().threads(), 3);
    /// ```
    pub fn threads(&self) -> usize {
        self.level.lane().settings.threads
    }

    /// What runs the CPU lane's jobs.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.handle().backend(), twolane::Backend::Rayon);
    /// ```
    pub fn backend(&self) -> Backend {
        self.level.lane().settings.backend
    }

    /// The Tokio runtime that is the I/O lane.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// assert_eq!(cpu.handle().io_handle().id(), tokio::runtime::Handle::current().id());
    /// # }
    /// ```
    pub fn io_handle(&self) -> &tokio::runtime::Handle {
        self.level.lane().io.handle()
    }

    /// Whether the I/O lane has been seen to run, and is still there.
    ///
    /// ```
    /// let io = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// let cpu = twolane::CpuRuntime::builder().io_handle(io.handle().clone()).build().unwrap();
    /// let handle = cpu.handle();
    /// assert_eq!(handle.io_lane_state(), twolane::IoLaneState::NotDriven);
    /// io.block_on(async { tokio::task::yield_now().await });
    /// assert_eq!(handle.io_lane_state(), twolane::IoLaneState::Driven);
    /// drop(io);
    /// assert_eq!(handle.io_lane_state(), twolane::IoLaneState::Gone);
    /// ```
    pub fn io_lane_state(&self) -> IoLaneState {
        self.level.lane().io.state()
    }

    /// What became of the jobs of this handle's [priority](Self::with_priority). It
    /// takes microseconds, and no other thread waits for it.
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::Priority;
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// for priority in [Priority::High, Priority::Normal, Priority::Low] {
    ///     println!("{priority:?}: {:?}", cpu.handle().with_priority(priority).metrics());
    /// }
    /// # }
    /// ```
    pub fn metrics(&self) -> Metrics {
        self.level.metrics()
    }
}

// As Tokio's own: no panic passes through a lane's code half-way, since every
// call of foreign code in it is caught.
impl UnwindSafe for Handle {}
impl RefUnwindSafe for Handle {}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lane = self.level.lane();
        let nice: Vec<_> = lane
            .started()
            .map(|p| (p, lane.settings.niceness[p.index()].nice))
            .collect();
        let mut handle = f.debug_struct("Handle");
        handle
            .field("priority", &self.priority())
            .field("backend", &self.backend())
            .field("threads", &self.threads())
            .field("running", &lane.running())
            .field("throttled_to_cores", &lane.throttled_to_cores())
            .field("closed", &lane.is_closed())
            .field("io_lane", &self.io_lane_state());
        match lane.nice_refused() {
            Some(refused) => handle.field("nice_refused", refused),
            None if nice::SUPPORTED => handle.field("nice", &nice),
            None => handle.field("nice", &"not on this platform"),
        };
        handle.finish()
    }
}
