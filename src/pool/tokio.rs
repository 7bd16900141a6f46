//! The other backend: a dedicated Tokio runtime, with timers and without an I/O driver.
//! It is for futures that call `tokio::spawn` on CPU-heavy parts of themselves.
//!
//! Each job is one Tokio task with the job inside, and a future's wake-up is Tokio's
//! own. So Tokio decides the order of the jobs, and also of the tasks that jobs spawn
//! with `tokio::spawn`. The lane's queue holds only jobs that were submitted before the
//! threads had started.
//!
//! **Shutdown.** When the runtime shuts down, its workers drop the tasks. If all
//! workers are stuck in jobs, no task is dropped; but the awaiters must be notified at
//! once. A registry of all jobs would cost each job more than everything else that the
//! lane does for it. So the lane registers only jobs that are awaited:
//!
//! - A [`Task`](crate::Task) that has to wait enters its job into the lane's registry,
//!   and then reads whether the lane is closed.
//! - The lane is closed first, and the control thread then closes all jobs in the
//!   registry. So at least one of the two sees the other.
//! - A job that is not awaited yet is closed by the drop of its Tokio task, or by an
//!   awaiter that comes earlier and finds the lane closed.
//!
//! The captures of a future are dropped with its Tokio task. Those of an awaited closure
//! that has not run may be dropped earlier, by the reaper.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use ::tokio::runtime::{Builder, Handle, Runtime};
use ::tokio::task::JoinHandle;

use crate::lane::{Level, Workers, thread as lane_thread};
use crate::panics;
use crate::task::{Run, Schedule, slice};

/// For how many jobs of one step a worker spawns a nudge, so that another worker can
/// take the job at once. If a step submits more jobs, the last one may stay with this
/// worker until the step is over. A nudge for each would cost as much as the jobs.
const MAX_NUDGES: u32 = 8;

/// How long a thread may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct CpuTokio {
    /// The control thread takes it when the lane closes.
    owner: Mutex<Option<Runtime>>,
    handle: Handle,
}

impl CpuTokio {
    /// Starts the workers and waits until each has run its start hook.
    pub(crate) fn start(level: &Level) -> io::Result<Arc<dyn Workers>> {
        let (lane, priority) = (level.lane(), level.priority());
        let threads = lane.settings.threads;
        let hooks = lane.settings.hooks.clone();
        let (started, all_started) = mpsc::channel();
        let (ready, all_ready) = mpsc::channel();
        // Relaxed, as for `next_name` below: the numbers only have to differ.
        let next_index = AtomicUsize::new(0);
        let stop_hooks = hooks.clone();
        // Weak: Tokio keeps its hooks as long as a handle of the runtime exists, and
        // the lane holds one.
        let weak_lane = Arc::downgrade(lane);
        // The threads of Tokio's blocking pool run this hook as well.
        let on_start = move || {
            if let Some(lane) = weak_lane.upgrade() {
                lane.thread_started();
                // Tokio starts more threads wherever `spawn_blocking` is called: each
                // sets its own nice value.
                lane.set_thread_niceness(priority);
                let level = Level::new(lane, priority);
                let index = next_index.fetch_add(1, Relaxed);
                // Only the workers have an index: other threads may wait for the lane.
                lane_thread::join_level(level, (index < threads).then_some(index));
            }
            // An error only means that the workers are up and the receiver is gone.
            let _ = started.send(());
            hooks.started();
            let _ = ready.send(());
        };
        let on_stop = move || {
            stop_hooks.stopping();
            if let Some(level) = lane_thread::leave_level() {
                level.lane().thread_ended();
            }
        };
        let next_name = AtomicUsize::new(0);
        let prefix = lane.settings.thread_prefix(priority);
        let name = move || format!("{prefix}-{}", next_name.fetch_add(1, Relaxed));
        try_threads(threads)?;
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(threads)
            .enable_time()
            .thread_name_fn(name)
            .on_thread_start(on_start)
            .on_thread_stop(on_stop);
        let runtime = match panics::catch(|| builder.build()) {
            Ok(runtime) => runtime?,
            Err(payload) => return Err(io::Error::other(payload.text())),
        };
        for _ in 0..threads {
            // Tokio does not report if it got fewer threads than requested.
            if all_started.recv_timeout(PATIENCE).is_err() {
                runtime.shutdown_background();
                return Err(io::Error::other(
                    "some of the runtime's workers did not start",
                ));
            }
        }
        for _ in 0..threads {
            all_ready
                .recv()
                .expect("the runtime, which is here, holds the sender in its start hook");
        }
        Ok(Arc::new(Self {
            handle: runtime.handle().clone(),
            owner: Mutex::new(Some(runtime)),
        }))
    }

    /// After a shutdown Tokio drops the task at once, which closes the job.
    fn spawn(&self, level: &Level, job: Arc<dyn Run>) -> JoinHandle<()> {
        let task = job.spawn_on(&self.handle);
        // Tokio's current handle is no test for this: code on a worker of this runtime
        // may have entered another runtime.
        if lane_thread::is_of(level) && slice::count_spawn() <= MAX_NUDGES {
            // A worker keeps its own latest task to itself (Tokio's LIFO slot), and
            // this worker may compute for long. The empty task takes that slot.
            drop(self.handle.spawn(async {}));
        }
        task
    }

    fn owner(&self) -> MutexGuard<'_, Option<Runtime>> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workers for CpuTokio {
    fn submit(&self, level: &Level, job: Arc<dyn Run>) -> Option<JoinHandle<()>> {
        if level.has_queued() {
            // Keep the order: the jobs that were queued before the threads started go
            // first.
            level.enqueue(job);
            return None;
        }
        Some(self.spawn(level, job))
    }

    fn notify(&self, level: &Level) {
        if let Some(job) = level.pop() {
            drop(self.spawn(level, job));
        }
    }

    fn notify_all(&self, level: &Level) {
        while level.has_queued() {
            self.notify(level);
        }
    }

    fn shutdown(&self) {
        let runtime = self.owner().take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }

    fn is_shut_down(&self) -> bool {
        self.owner().is_none()
    }
}

/// Checks that the system can start `n` threads, and one more.
///
/// If it cannot, Tokio (1.54) panics when it builds the runtime. If some of the workers
/// have started, it then waits for them forever while it unwinds: with three of four
/// threads, `build` hangs. So this function checks before. Other programs may still
/// take the threads in between; nothing guards against that.
fn try_threads(n: usize) -> io::Result<()> {
    let barrier = Mutex::new(());
    thread::scope(|scope| {
        let closed = barrier.lock();
        let wait = || drop(barrier.lock());
        let threads = (0..=n).map(|_| thread::Builder::new().spawn_scoped(scope, wait));
        let outcome = threads.collect::<io::Result<Vec<_>>>();
        drop(closed);
        // Join them, so that the system no longer counts them.
        let join = |thread: thread::ScopedJoinHandle<'_, ()>| drop(thread.join());
        outcome.map(|threads| threads.into_iter().for_each(join))
    })
}
