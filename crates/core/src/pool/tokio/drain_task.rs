//! [`DrainTask`]: the Tokio task that runs a lane's jobs.
//!
//! **A worker may stray.** `tokio::task::block_in_place` gives the worker to a thread of the
//! blocking pool of the *current* runtime. In a job, outside `in_cpu_context`, that is the
//! I/O runtime. A drain task on such a thread runs no job: it sends the worker back to a
//! thread of the lane ([`send_worker_back`]). A worker that parks there has no drain task. The
//! drop of the I/O runtime waits for its thread, which ends since that drop closes the lane.

use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};

use ::tokio::task::{block_in_place, spawn_blocking};

use crate::lane::{Level, thread as lane_thread};
use crate::pace::Popped;
use crate::pool::drain_tasks::DrainTasks;
use crate::task::{Runnable, StepEnd};
use crate::trace::warn_of_block_in_place;

/// Runs the lane's jobs, as long as there are any.
pub(super) struct DrainTask {
    level: Arc<Level>,
    drain_tasks: Arc<DrainTasks>,
    /// A job to go on with, which is not in the queue. (It has been suspended before, so
    /// it is in the registry, and a shutdown finds it.)
    next: Option<Arc<dyn Runnable>>,
}

impl DrainTask {
    pub(super) fn new(level: &Arc<Level>, drain_tasks: &Arc<DrainTasks>) -> Self {
        Self {
            level: level.clone(),
            drain_tasks: drain_tasks.clone(),
            next: None,
        }
    }
}

impl Future for DrainTask {
    type Output = ();

    /// One step for each poll, so that Tokio's own tasks get their turn, and each step
    /// has a cooperative budget.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let (level, mut popped) = (&this.level, Popped::default());
        if !lane_thread::is_of(level) {
            send_worker_back();
        } else if let Some(job) = this.next.take().or_else(|| level.queue.pop(&mut popped)) {
            let _io = level.lane.io.enter();
            let mut worker = level.worker(lane_thread::worker_index());
            worker.popped = popped;
            match job.run(&mut worker) {
                // A step of a key has its turn each time.
                StepEnd::Requeue { job, yielded }
                    if level.has_queued() || worker.popped.has_key =>
                {
                    level.queue.put_back(job, yielded);
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
