//! [`Companion`]: a Tokio runtime beside the workers of a priority, for what is spawned with Tokio.
//!
//! A future that calls `tokio::spawn` on parts of itself (`in_cpu_context`), and a library that takes a
//! Tokio handle (`Handle::tokio_handle`), need a runtime whose threads give way to the I/O lane as the
//! workers do. Each priority has one from its first use on (`launcher.rs`): as many threads as workers,
//! with their weight, stack and hooks, with timers, and without an I/O driver unless the user sets one.
//! What runs there are Tokio's tasks.
//!
//! **A job that has parts there runs beside them** ([`Steps`]), from its first poll in that context on.
//! It plans, and hands out parts, where they run, and a part that wakes it does so within one runtime.
//! Between two pools of threads these are wake-ups, and queries take a tenth longer (those of TPC-H, on
//! two cores).
//!
//! A shutdown closes the jobs first, and drops these tasks then. So a job that has parts there, and finds
//! the lane open after its last step, has lost none of them (`task/step.rs`).

use std::hint::black_box;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{io, thread};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{block_in_place, spawn_blocking};

use super::thread as lane_thread;
use super::{Level, Submitter, ThreadSettings};
use crate::panics;
use crate::task::{Runnable, StepEnd};
use crate::trace::warn_of_block_in_place;

/// After how many polls a busy worker looks at the timers and at what has called
/// `tokio::task::yield_now`. Tokio's default of 61 is made for polls of microseconds.
const EVENT_INTERVAL: u32 = 8;

/// How long a thread may take to start.
const START_LIMIT: Duration = Duration::from_secs(10);

pub(crate) struct Companion {
    pub(crate) handle: Handle,
    /// The control thread takes it when the lane closes.
    owner: Mutex<Option<Runtime>>,
}

impl Companion {
    /// Starts its threads, and waits until each has run its start hooks.
    pub(super) fn start(own: &Submitter) -> io::Result<Self> {
        let (lane, priority) = (&own.levels.lane, own.priority);
        let threads = lane.settings.threads(priority);
        let (started, all_started) = mpsc::channel();
        let (ready, all_ready) = mpsc::channel();
        // Weak: Tokio keeps its hooks as long as a handle of the runtime exists, and
        // the lane holds one.
        let levels = Arc::downgrade(&own.levels);
        // The threads of Tokio's blocking pool run this hook as well.
        let on_start = move || {
            if let Some(levels) = levels.upgrade() {
                // Tokio starts more threads wherever `spawn_blocking` is called: each
                // sets its own nice value.
                lane_thread::join_lane(&levels.lane, Some(priority));
                // An error only means that the threads are up and the receiver is gone.
                let _ = started.send(());
                let _io = levels.lane.io.enter();
                // It is no worker: it may wait for jobs.
                lane_thread::start_level(Submitter::new(levels.clone(), priority), None);
            }
            let _ = ready.send(());
        };
        // Relaxed: the numbers only have to differ.
        let next_name = AtomicUsize::new(0);
        let prefix = lane.settings.thread_prefix(priority);
        let name = move || format!("{prefix}-tokio-{}", next_name.fetch_add(1, Relaxed));
        try_threads(&lane.settings, threads)?;
        let mut builder = Builder::new_multi_thread();
        builder.enable_time().event_interval(EVENT_INTERVAL);
        if let Some(size) = lane.settings.stack_size {
            builder.thread_stack_size(size);
        }
        lane.settings
            .set_tokio
            .iter()
            .for_each(|set| set(&mut builder));
        builder
            .worker_threads(threads)
            .thread_name_fn(name)
            .on_thread_start(on_start)
            .on_thread_unpark(giveway::note_activity)
            .on_thread_stop(lane_thread::leave_level);
        let (tell, built) = mpsc::channel();
        thread::Builder::new().spawn(move || tell.send(panics::catch(|| builder.build())))?;
        let no_room = |_| io::Error::other("the runtime's threads did not start: there is no room");
        let built = built.recv_timeout(START_LIMIT).map_err(no_room)?;
        let runtime = built.unwrap_or_else(|payload| Err(io::Error::other(payload.text())))?;
        for _ in 0..threads {
            // Tokio does not report if it got fewer threads than requested.
            if all_started.recv_timeout(START_LIMIT).is_err() {
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
        Ok(Self {
            handle: runtime.handle().clone(),
            owner: Mutex::new(Some(runtime)),
        })
    }

    /// Runs a job there until it waits.
    pub(super) fn spawn_steps(&self, level: &Arc<Level>, job: Arc<dyn Runnable>) {
        let (level, next) = (level.clone(), Some(job));
        self.handle.spawn(Steps { level, next });
    }

    /// How many tasks are there; a hint.
    pub(super) fn tasks(&self) -> usize {
        self.handle.metrics().num_alive_tasks()
    }

    /// Drops the tasks between two of their polls, and lets the threads end. Does not wait for them.
    pub(super) fn shutdown(&self) {
        let owner = self.owner.lock();
        let runtime = owner.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

/// Runs a job of the level until it waits. If it is dropped before, the lane is closed, and so is the
/// job: it has been suspended, and is registered.
///
/// **A worker may stray.** `block_in_place` gives the worker to a thread of the blocking pool of the
/// *current* runtime, and outside of `in_cpu_context` that is the I/O runtime. Such a thread runs no step.
struct Steps {
    level: Arc<Level>,
    next: Option<Arc<dyn Runnable>>,
}

impl Future for Steps {
    type Output = ();

    /// One step for each poll, so that each has a cooperative budget.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let level = self.level.clone();
        if !lane_thread::is_of_lane(&level.lane) {
            send_worker_back();
        } else if let Some(job) = self.next.take() {
            let _io = level.lane.io.enter();
            let mut worker = level.worker(None);
            // As those of keys, it has no part in the shares of the workers.
            worker.popped.has_key = true;
            worker.is_beside_parts = true;
            if let StepEnd::Requeue { job, .. } = job.run(&mut worker) {
                self.next = Some(job);
            }
        }
        if self.next.is_none() {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Call in a task that is polled on a thread of the I/O runtime: gives the worker to a thread of the
/// blocking pool of its own runtime, which is a thread of the lane. This call made the worker stray, too.
fn send_worker_back() {
    warn_of_block_in_place();
    block_in_place(|| {
        // When `block_in_place` returns, it takes the worker back if no thread has it yet. The
        // pool starts its closures in order, so this one tells that a thread has the worker, or
        // is about to: then the next poll does it again. An error means that the runtime shuts
        // down.
        let (tell, told) = mpsc::channel();
        spawn_blocking(move || tell.send(()));
        let _ = told.recv();
    });
}

/// Checks that the system can start the threads of a priority, and one more.
///
/// If it cannot, Tokio (1.54) panics when it builds the runtime. If some of the workers
/// have started, it then waits for them forever while it unwinds: with three of four
/// threads, `build` hangs. So this function checks before. Other programs, or this one's
/// allocator, may still take the room in between: then a thread of its own hangs, and `start`
/// gives up after some [`START_LIMIT`].
fn try_threads(settings: &ThreadSettings, threads: usize) -> io::Result<()> {
    let barrier = Mutex::new(());
    thread::scope(|scope| {
        let closed = barrier.lock();
        // An allocation: the allocator may take memory for each thread that has one.
        let wait = || drop(black_box(Box::new(barrier.lock())));
        let start = |_| settings.thread().spawn_scoped(scope, wait);
        let threads = (0..=threads).map(start);
        let outcome = threads.collect::<io::Result<Vec<_>>>();
        drop(closed);
        // Join them, so that the system no longer counts them.
        let join = |thread: thread::ScopedJoinHandle<'_, ()>| drop(thread.join());
        outcome.map(|threads| threads.into_iter().for_each(join))
    })
}
