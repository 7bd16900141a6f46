//! The other backend: a dedicated Tokio runtime, with timers and without an
//! I/O driver, for futures that call `tokio::spawn` on CPU-heavy parts of
//! themselves.
//!
//! A job is one Tokio task with the job inside, and a wake-up of a future is Tokio's
//! own. So the order of jobs is Tokio's, and so is what jobs `tokio::spawn`. The
//! lane's queue holds only what was submitted before the threads were there.
//!
//! **Shutdown.** Tokio drops the tasks when the runtime shuts down, each on a worker;
//! so where all workers are stuck in jobs, none is dropped. Their awaiters must be
//! told at once all the same. The lane does not know the jobs (a registry of all would
//! cost each more than the rest of its way), but those that are awaited: a
//! [`Task`](crate::Task) that has to wait enters the job into the lane's register of
//! awaited jobs, and then looks whether the lane is closed. The control thread closes the lane
//! and then what is in the register; one of the two sees the other. A job that is not
//! awaited yet is closed by its awaiter, which finds the lane closed. What a closed job
//! has captured is dropped with its Tokio task.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use ::tokio::runtime::{Builder, Handle, Runtime};
use ::tokio::task::JoinHandle;

use crate::lane::{Level, Workers, thread as lane_thread};
use crate::panics;
use crate::task::{Run, Schedule, budget};

/// Jobs of one step of a job that another worker can have at once, each. Of a larger
/// lot, the last one may stay with its worker until that step is over; a nudge for each
/// would cost as much as the jobs.
const MAX_NUDGES: u32 = 8;

/// How long a thread may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct CpuTokio {
    /// Taken by the control thread when the lane closes.
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
        // Relaxed, as `next_name` below: the numbers only have to differ.
        let next_index = AtomicUsize::new(0);
        let stop_hooks = hooks.clone();
        // Weak: Tokio keeps its hooks as long as anyone has a handle of the
        // runtime, and the lane has one.
        let weak_lane = Arc::downgrade(lane);
        // Threads of Tokio's blocking pool come through here as well.
        let on_start = move || {
            if let Some(lane) = weak_lane.upgrade() {
                lane.thread_started();
                // Tokio makes more threads wherever `spawn_blocking` is
                // called: each weighs itself.
                lane.set_thread_niceness(priority);
                let level = Level::new(lane, priority);
                let index = next_index.fetch_add(1, Relaxed);
                // On other threads than the workers, one may wait for the lane.
                lane_thread::start(level, (index < threads).then_some(index));
            }
            // Nobody listens any more once the workers are up.
            let _ = started.send(());
            hooks.started();
            let _ = ready.send(());
        };
        let on_stop = move || {
            stop_hooks.stopping();
            if let Some(level) = lane_thread::end() {
                level.lane().thread_ended();
            }
        };
        let next_name = AtomicUsize::new(0);
        let named_lane = Arc::downgrade(lane);
        let name = move || {
            let index = next_name.fetch_add(1, Relaxed);
            let lane = named_lane.upgrade();
            lane.map_or_else(String::new, |lane| {
                lane.settings.thread_name(priority, index)
            })
        };
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
            // Whether Tokio got fewer threads than it was asked for, it does
            // not say.
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

    /// After a shutdown Tokio drops the task at once, and so closes the job.
    fn spawn(&self, level: &Level, job: Arc<dyn Run>) -> JoinHandle<()> {
        let task = job.spawn_on(&self.handle);
        // Not by Tokio's current handle: code that has entered another runtime is
        // on this one's worker still.
        if lane_thread::is_of(level) && budget::count_spawn() <= MAX_NUDGES {
            // A worker keeps its own latest task to itself (Tokio's LIFO slot), and
            // this one may compute for long: so that is not the latest.
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
            // What was queued before the threads were there goes first.
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

/// Whether so many threads are to be had, and one for good measure.
///
/// A Tokio runtime that is built where they are not panics (1.54), and if it
/// got some of its workers, it waits for them for ever while it unwinds: with three
/// of four threads to be had, `build` hangs. So it is asked before. Other programs may
/// take the threads in between; that is left to chance.
fn try_threads(n: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        let closed = gate.lock();
        let wait = || drop(gate.lock());
        let threads = (0..=n).map(|_| thread::Builder::new().spawn_scoped(scope, wait));
        let outcome = threads.collect::<io::Result<Vec<_>>>();
        drop(closed);
        // Joined: then the system counts them no more.
        let join = |thread: thread::ScopedJoinHandle<'_, ()>| drop(thread.join());
        outcome.map(|threads| threads.into_iter().for_each(join))
    })
}
