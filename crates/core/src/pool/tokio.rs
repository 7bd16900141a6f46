//! The other backend: a dedicated Tokio runtime, with timers and without an I/O driver.
//! It is for futures that call `tokio::spawn` on CPU-heavy parts of themselves.
//!
//! Jobs stay in the lane's own queue, as on the rayon backend. The lane spawns *drain
//! tasks* on the runtime: a Tokio task that runs one step of a job in each poll, as long
//! as there are jobs ([`DrainTask`]). So Tokio decides when a worker turns to the lane's
//! jobs and when to the tasks that jobs have spawned, and the lane's queue decides which
//! job is next. This matters to a future that was woken: in Tokio's own queues, jobs
//! that come later pass it (a worker takes up to half of the shared queue into its local
//! one, and another worker does not look there before the shared queue is empty).
//!
//! **A step runs inside the I/O runtime's context**, as on the rayon backend: a socket,
//! a timer or a `tokio::spawn` in a job, or in the `Drop` of what it captures, belongs to
//! the I/O lane. A future that computes in tasks of its own asks for the other context
//! ([`in_cpu_context`](crate::in_cpu_context)).
//!
//! `drain_tasks.rs` says how many drain tasks there are.
//!
//! **A worker may stray.** `tokio::task::block_in_place` gives the worker to a thread of the
//! blocking pool of the *current* runtime. In a job, outside `in_cpu_context`, that is the
//! I/O runtime. A drain task on such a thread runs no job: it sends the worker back to a
//! thread of the lane ([`send_worker_back`]). A worker that parks there has no drain task. The
//! drop of the I/O runtime waits for its thread, which ends since that drop closes the lane.

use std::hint::black_box;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Once, PoisonError, mpsc};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{io, thread};

use ::tokio::runtime::{Builder, Handle, Runtime};
use ::tokio::task::{block_in_place, spawn_blocking};

use super::drain_tasks::DrainTasks;
use super::stranded::Stranded;
use crate::lane::{Level, Submitter, ThreadHooks, ThreadSettings, Workers, thread as lane_thread};
use crate::panics;
use crate::task::{Run, StepEnd};
use crate::trace::warn_of_block_in_place;

/// How many drain tasks there may be in addition to one for each worker.
///
/// A job that blocks its thread (`block_in_place`) occupies a drain task, on a thread
/// that Tokio adds. So many jobs may do that before the others have to wait. More would
/// delay Tokio's own tasks: while jobs are queued, each drain task has a turn for each of
/// theirs.
const SPARE_DRAIN_TASKS: usize = 4;

/// After how many polls a busy worker looks at the timers and at what has called
/// `tokio::task::yield_now`. Tokio's default of 61 is made for polls of microseconds.
const EVENT_INTERVAL: u32 = 8;

/// How long a thread may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct CpuTokio {
    /// The control thread takes it when the lane closes.
    owner: Mutex<Option<Runtime>>,
    handle: Handle,
    drain_tasks: Arc<DrainTasks>,
    /// With how many workers are parked: those with no job, and with no task of a library.
    stranded: Arc<Stranded>,
}

impl CpuTokio {
    /// Starts the workers and waits until each has run its start hook.
    pub(crate) fn start(own: &Submitter) -> io::Result<Arc<dyn Workers>> {
        let (lane, priority) = (&own.levels.lane, own.priority);
        let threads = lane.settings.threads;
        let (started, all_started) = mpsc::channel();
        let (ready, all_ready) = mpsc::channel();
        // Relaxed, as for `next_name` below: the numbers only have to differ.
        let next_index = AtomicUsize::new(0);
        // Weak: Tokio keeps its hooks as long as a handle of the runtime exists, and
        // the lane holds one.
        let levels = Arc::downgrade(&own.levels);
        // The threads of Tokio's blocking pool run this hook as well.
        let on_start = move || {
            if let Some(levels) = levels.upgrade() {
                // Tokio starts more threads wherever `spawn_blocking` is called: each
                // sets its own nice value.
                lane_thread::begin(&levels.lane, Some(priority));
                let own = Submitter::new(levels, priority);
                let index = next_index.fetch_add(1, Relaxed);
                // Only the workers have an index: other threads may wait for the lane.
                lane_thread::join_level(own, (index < threads).then_some(index));
            }
            // An error only means that the workers are up and the receiver is gone.
            let _ = started.send(());
            in_io_context(ThreadHooks::started);
            let _ = ready.send(());
        };
        let on_stop = move || {
            in_io_context(ThreadHooks::stopping);
            lane_thread::leave_level();
        };
        let stranded = Stranded::new(threads);
        let on_park = {
            let (strayed, stranded) = (Once::new(), stranded.clone());
            move || {
                stranded.parked.fetch_add(1, SeqCst);
                #[cfg(test)]
                super::stranded::tests::before_park();
                if lane_thread::ask_own(|_| ()).is_none() {
                    strayed.call_once(|| panics::run_hook("the log", warn_of_block_in_place));
                }
            }
        };
        let on_unpark = {
            let stranded = stranded.clone();
            move || {
                stranded.parked.fetch_sub(1, SeqCst);
            }
        };
        let next_name = AtomicUsize::new(0);
        let prefix = lane.settings.thread_prefix(priority);
        let name = move || format!("{prefix}-{}", next_name.fetch_add(1, Relaxed));
        try_threads(&lane.settings)?;
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(threads)
            .enable_time()
            .event_interval(EVENT_INTERVAL)
            .thread_name_fn(name)
            .on_thread_start(on_start)
            .on_thread_park(on_park)
            .on_thread_unpark(on_unpark)
            .on_thread_stop(on_stop);
        if let Some(size) = lane.settings.stack_size {
            builder.thread_stack_size(size);
        }
        let (tell, built) = mpsc::channel();
        thread::Builder::new().spawn(move || tell.send(panics::catch(|| builder.build())))?;
        let no_room = |_| io::Error::other("the runtime's threads did not start: there is no room");
        let built = built.recv_timeout(PATIENCE).map_err(no_room)?;
        let runtime = built.unwrap_or_else(|payload| Err(io::Error::other(payload.text())))?;
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
            drain_tasks: Arc::new(DrainTasks::new(threads + SPARE_DRAIN_TASKS)),
            stranded,
        }))
    }
}

impl Workers for CpuTokio {
    fn notify(&self, level: &Arc<Level>) {
        self.stranded.note_push(level, &self.handle);
        if !self.drain_tasks.try_add() {
            return;
        }
        giveway::note_activity();
        self.handle.spawn(DrainTask {
            level: level.clone(),
            drain_tasks: self.drain_tasks.clone(),
            next: None,
        });
        if lane_thread::is_of(level) {
            // A worker keeps its own latest task to itself (Tokio's LIFO slot), and this
            // worker may compute for long. The empty task takes that slot. (Tokio's
            // current handle is no test for a worker of this runtime: a step runs inside
            // another context.)
            self.handle.spawn(async {});
        }
    }

    fn notify_all(&self, level: &Arc<Level>) {
        // As many drain tasks as there may be.
        for _ in 0..level.queue().len().min(self.drain_tasks.most()) {
            self.notify(level);
        }
    }

    fn runtime(&self) -> Option<&Handle> {
        Some(&self.handle)
    }

    fn tokio_tasks(&self) -> usize {
        let alive = self.handle.metrics().num_alive_tasks();
        alive.saturating_sub(self.drain_tasks.live())
    }

    fn shutdown(&self) {
        let owner = self.owner.lock();
        let runtime = owner.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

/// Runs hooks of the user inside the context in which jobs run.
fn in_io_context(run: fn(&ThreadHooks)) {
    if let Some(own) = lane_thread::served() {
        let _io = own.levels.lane.io.handle.enter();
        run(&own.levels.settings().hooks);
    }
}

/// Runs the lane's jobs, as long as there are any.
struct DrainTask {
    level: Arc<Level>,
    drain_tasks: Arc<DrainTasks>,
    /// A job to go on with, which is not in the queue. (It has been suspended before, so
    /// it is in the registry, and a shutdown finds it.)
    next: Option<Arc<dyn Run>>,
}

impl Future for DrainTask {
    type Output = ();

    /// One step for each poll, so that Tokio's own tasks get their turn, and each step
    /// has a cooperative budget.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let level = &this.level;
        if !lane_thread::is_of(level) {
            send_worker_back();
        } else if let Some(job) = this.next.take().or_else(|| level.queue().pop()) {
            let _io = level.lane.io.handle.enter();
            match job.run(&mut level.worker(lane_thread::worker())) {
                StepEnd::Requeue { job, yielded } if level.has_queued() => {
                    level.queue().put_back(job, yielded);
                }
                StepEnd::Requeue { job, .. } => this.next = Some(job),
                StepEnd::Suspended | StepEnd::Ended => {}
            }
        }
        let is_empty = || !level.has_queued();
        if this.next.is_none() && is_empty() && this.drain_tasks.try_end(is_empty) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Call in a drain task that is polled on a thread of the I/O runtime: gives the worker to a
/// thread of the blocking pool of its own runtime, which is a thread of the lane.
///
/// This is the call that made the worker stray. Here the current runtime is the worker's own.
fn send_worker_back() {
    panics::run_hook("the log", warn_of_block_in_place);
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
/// gives up after some [`PATIENCE`].
fn try_threads(settings: &ThreadSettings) -> io::Result<()> {
    let barrier = Mutex::new(());
    thread::scope(|scope| {
        let closed = barrier.lock();
        // An allocation: the allocator may take memory for each thread that has one.
        let wait = || drop(black_box(Box::new(barrier.lock())));
        let start = |_| settings.thread().spawn_scoped(scope, wait);
        let threads = (0..=settings.threads).map(start);
        let outcome = threads.collect::<io::Result<Vec<_>>>();
        drop(closed);
        // Join them, so that the system no longer counts them.
        let join = |thread: thread::ScopedJoinHandle<'_, ()>| drop(thread.join());
        outcome.map(|threads| threads.into_iter().for_each(join))
    })
}
