//! [`Handle`]: spawns on both lanes.

mod current;
mod deadline;
mod executor;
mod install;
mod io;
mod io_handle;
mod metrics;
mod reserve;
mod spawn;

use std::fmt;
use std::future::Future;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::time::Instant;

use stallwatch::Name;

use crate::backend::Backend;
use crate::error::JoinError;
use crate::lane::Level;
use crate::os::{nice, preemption, surroundings};
use crate::priority::Priority;
use crate::task::Schedule;
pub use current::{EnterGuard, NoCurrentHandle, spawn_cpu, spawn_io};
pub use io_handle::IoHandle;

/// Spawns on the two lanes of a [`CpuRuntime`](crate::CpuRuntime).
///
/// Cheap to clone, and usable from any thread. It does not keep the lane running;
/// the [`CpuRuntime`](crate::CpuRuntime) does.
///
/// | use | for | costs |
/// |---|---|---|
/// | [`spawn_cpu`](Self::spawn_cpu) | a closure that computes | two thread wake-ups, one allocation |
/// | [`spawn_cpu_with`](Self::spawn_cpu_with) | a closure with a long loop, which asks whether to go on | the same |
/// | [`spawn`](Self::spawn) | a future that computes between its `.await`s | the same, and a box for the future |
/// | [`spawn_io`](Self::spawn_io) | a request, anything with sockets, from inside a job | a hop to the I/O lane and back |
/// | [`io`](Self::io) | the same for what outlives the CPU lane | the same |
/// | [`install`](Self::install) | a closure that borrows, from a plain thread | blocks the caller |
///
/// The guide has the measurements, and the smallest piece of work that is worth an
/// offload: `twolane::guide::cost`.
///
/// The methods spawn at the handle's [`Priority`]. It is `Normal`, unless
/// [`with_priority`](Self::with_priority) set another.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let handle = cpu.handle();
/// let text = tokio::spawn(async move { handle.spawn_cpu(|| "done").await.unwrap() });
/// assert_eq!(text.await.unwrap(), "done");
/// # }
/// ```
#[derive(Clone)]
pub struct Handle {
    level: Level,
    /// Of the jobs that this handle submits.
    deadline: Option<Instant>,
}

impl Handle {
    pub(crate) fn new(level: Level) -> Self {
        Self {
            level,
            deadline: None,
        }
    }

    fn at(&self, level: Level) -> Self {
        Self {
            level,
            deadline: self.deadline,
        }
    }

    pub(crate) fn level(&self) -> &Level {
        &self.level
    }

    /// Returns a handle of the same lane at another [`Priority`].
    ///
    /// Jobs spawned by the returned handle run on that priority's threads.
    ///
    /// # Examples
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
        self.at(self.level.with_priority(priority))
    }

    /// Returns a handle whose jobs go by that name in [`call_sites`](Self::call_sites).
    ///
    /// Without it they go by the file and line of the call that submits them. Use it
    /// where one line submits the jobs of many callers. Keep the handle: the call looks
    /// the name up in a table of the process. That table has room for 4,096 sites and never
    /// shrinks, so name kinds of jobs, not single ones. Once it is full, new names have no
    /// effect, and jobs of new lines are counted as `other`.
    ///
    /// A name longer than 256 bytes is cut between two characters and ends in `…`: two names
    /// that are equal up to there are one. So all names of a process take 1 MiB at most.
    ///
    /// The name goes along with the priority: through
    /// [`with_priority`](Self::with_priority), and as the current handle where this one is
    /// [entered](Self::enter). Inside the jobs themselves the current handle has no name.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let decode = cpu.handle().with_name("decode");
    /// decode.spawn_cpu(|| 6 * 7).await.unwrap();
    /// assert_eq!(cpu.handle().call_sites()[0].site, "decode");
    /// # }
    /// ```
    pub fn with_name(&self, name: &str) -> Self {
        self.at(self.level.at(Name::named(name)))
    }

    /// Returns a handle whose jobs go by that place in [`call_sites`](Self::call_sites), unless
    /// this one has a [name](Self::with_name).
    ///
    /// For libraries, whose own line submits the jobs of all their callers.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::panic::Location;
    ///
    /// #[track_caller]
    /// fn decode(cpu: &twolane::Handle, frame: Vec<u8>) -> twolane::Task<usize> {
    ///     cpu.with_location(Location::caller()).spawn_cpu(move || frame.len())
    /// }
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let line = line!() + 1;
    /// decode(&cpu.handle(), vec![0; 3]).await.unwrap();
    /// assert!(cpu.handle().call_sites()[0].site.ends_with(&format!(":{line}")));
    /// # }
    /// ```
    pub fn with_location(&self, location: &'static Location<'static>) -> Self {
        match self.level.site() {
            Name::OTHER => self.at(self.level.at(Name::of(location))),
            _ => self.clone(),
        }
    }

    /// Returns a handle whose jobs need no permit of a queue with a
    /// [limit](crate::Builder::queue_limit).
    ///
    /// For jobs whose number and memory something else bounds: a window, a semaphore of your
    /// own, a fixed number of them. A job that waits for such a job may hold the last permit.
    /// What these jobs submit by the current handle needs no permit either.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::Priority;
    /// let cpu = twolane::CpuRuntime::builder().queue_limit(Priority::Normal, 1).build().unwrap();
    /// let permit = cpu.handle().try_reserve().unwrap(); // the only one
    /// let error = cpu.spawn_cpu(|| 1).await.unwrap_err();
    /// assert_eq!(error.kind(), twolane::JoinErrorKind::QueueFull);
    /// assert_eq!(cpu.handle().without_limit().spawn_cpu(|| 1).await.unwrap(), 1);
    /// # drop(permit);
    /// # }
    /// ```
    pub fn without_limit(&self) -> Self {
        self.at(self.level.without_limit())
    }

    /// Returns the priority at which this handle spawns.
    ///
    /// # Examples
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

    /// Returns the number of threads of each priority that is in use.
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::builder().worker_threads(3).build().unwrap();
    /// assert_eq!(cpu.handle().worker_threads(), 3);
    /// ```
    pub fn worker_threads(&self) -> usize {
        self.level.lane().settings.threads
    }

    /// Returns the backend that runs the CPU lane's jobs.
    ///
    /// # Examples
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

    /// Returns the handle of the Tokio runtime that is the I/O lane.
    ///
    /// # Examples
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

    /// Returns the handle of the Tokio runtime whose workers are the threads of this handle's
    /// [priority](Self::with_priority), for libraries that take one. `None` with
    /// [`Backend::Rayon`], whose threads are no Tokio workers, and in a start hook, before they are.
    ///
    /// What is spawned with it computes on the lane, and yields to its jobs at each `.await` that
    /// waits. It is a task of Tokio, and no job: no permit, no deadline, and no counter but
    /// [`Metrics::tokio_tasks`](crate::Metrics::tokio_tasks). The current handle in it is that of
    /// the lane. `spawn_blocking` there starts threads of the lane, with its nice value.
    ///
    /// That runtime has timers and no I/O driver. A socket that is opened there panics with Tokio's
    /// message, *"A Tokio 1.x context was found, but IO is disabled"*: give requests to
    /// [`spawn_io`](crate::spawn_io) or to an adapter. The guide says what that means for the
    /// libraries that it knows: `twolane::guide::engines`.
    ///
    /// A shutdown drops these tasks between two of their polls, and counts those that are left
    /// ([`Remaining`](crate::Remaining)). What is spawned after it is dropped at once: so close the
    /// library first. A closure of `spawn_blocking` that never returns holds a shutdown up.
    /// [`Task::wait`](crate::Task::wait) in such a task may wait for its own thread: `.await` there.
    /// If a job has called `block_in_place` outside of `in_cpu_context`, a thread of the I/O runtime
    /// may run these tasks, until the lane turns to its next job.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// use twolane::{Backend, CpuRuntime, Priority};
    /// let cpu = CpuRuntime::builder().backend(Backend::Runtime).build().unwrap();
    /// let compaction = cpu.handle().with_priority(Priority::Low).tokio_handle().unwrap();
    /// let sum = compaction.spawn(async { (1..=10_u64).sum::<u64>() }); // or a library does
    /// assert_eq!(sum.await.unwrap(), 55);
    /// # }
    /// ```
    pub fn tokio_handle(&self) -> Option<tokio::runtime::Handle> {
        self.level.workers()?.runtime().cloned()
    }

    /// Returns whether the CPU lane was shut down, or is about to be: it takes no job any more.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let handle = cpu.handle();
    /// assert!(!handle.is_closed());
    /// cpu.shutdown().await;
    /// assert!(handle.is_closed());
    /// # }
    /// ```
    pub fn is_closed(&self) -> bool {
        self.level.lane().is_closed()
    }

    /// Completes when the CPU lane is shut down, or when it ends with its I/O runtime.
    ///
    /// For what runs elsewhere and serves the lane: a feeder, a cache. The lane's own jobs end
    /// without it. It needs no runtime.
    ///
    /// # Cancel safety
    ///
    /// It is cancel safe.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let feeder = tokio::spawn(cpu.handle().closed());
    /// drop(cpu);
    /// feeder.await.unwrap();
    /// # }
    /// ```
    pub fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.level.lane().closing()
    }

    /// Returns the error by which a submission is refused for good, if the lane is closed or its
    /// I/O runtime gone.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let handle = cpu.handle();
    /// assert!(handle.close_error().is_none());
    /// drop(cpu);
    /// assert_eq!(handle.close_error().unwrap().kind(), twolane::JoinErrorKind::Shutdown);
    /// # }
    /// ```
    pub fn close_error(&self) -> Option<JoinError> {
        self.level.lane().close_reason().map(JoinError::from)
    }

    /// Returns the handle of the I/O lane alone, which works after a shutdown of the CPU lane
    /// as well.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let io = cpu.handle().io();
    /// drop(cpu);
    /// assert_eq!(io.spawn(async { 6 * 7 }).await.unwrap(), 42);
    /// # }
    /// ```
    pub fn io(&self) -> IoHandle {
        IoHandle::new(self.level.clone())
    }
}

// As for Tokio's handle. No panic can leave a lane half-changed: the lane catches the
// panics of all user code that it calls.
impl UnwindSafe for Handle {}
impl RefUnwindSafe for Handle {}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lane = self.level.lane();
        let nice: Vec<_> = lane
            .started()
            .filter(|_| nice::SUPPORTED)
            .map(|p| (p, lane.settings.niceness[p.index()].nice))
            .collect();
        f.debug_struct("Handle")
            .field("priority", &self.priority())
            .field("backend", &self.backend())
            .field("worker_threads", &self.worker_threads())
            .field("running", &lane.running())
            .field("throttled_to_cores", &lane.throttled_to_cores())
            .field("closed", &lane.is_closed())
            .field("io_lane_gone", &lane.io.is_gone())
            .field("nice", &nice)
            .field("nice_refused", &lane.nice_refused())
            .field("preemption", &preemption::preemption())
            .field("surroundings", &surroundings::known())
            .finish()
    }
}
