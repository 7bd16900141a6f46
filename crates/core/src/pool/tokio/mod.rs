//! The other backend: a dedicated Tokio runtime, with timers and without an I/O driver.
//! It is for futures that call `tokio::spawn` on CPU-heavy parts of themselves.
//!
//! Jobs stay in the lane's own queue, as on the rayon backend. The lane spawns *drain
//! tasks* on the runtime: a Tokio task that runs one step of a job in each poll, as long
//! as there are jobs ([`DrainTask`]). Tokio decides when a worker turns to the lane's
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
//! `start.rs` starts the runtime. `drain_tasks.rs` (above, in `pool/`) says how many drain tasks
//! there are, `drain_task.rs` has what one of them does, and `stranded.rs` finds jobs beside a
//! worker that Tokio let park.

mod drain_task;
mod start;
mod stranded;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use ::tokio::runtime::{Handle, Runtime};

use super::drain_tasks::DrainTasks;
use crate::lane::{Level, Workers, thread as lane_thread};
use crate::task::ticker;
use drain_task::DrainTask;
use stranded::Stranded;

/// How many drain tasks there may be in addition to one for each worker.
///
/// A job that blocks its thread (`block_in_place`) occupies a drain task, on a thread
/// that Tokio adds. This many jobs may do that before the others have to wait. More would
/// delay Tokio's own tasks: while jobs are queued, each drain task has a turn for each of
/// theirs.
const SPARE_DRAIN_TASKS: usize = 4;

pub(crate) struct CpuTokio {
    /// The control thread takes it when the lane closes.
    owner: Mutex<Option<Runtime>>,
    handle: Handle,
    drain_tasks: Arc<DrainTasks>,
    /// With how many workers are parked: those with no job, and with no task of a library.
    stranded: Arc<Stranded>,
}

impl CpuTokio {
    /// Has the ticker look for a worker that parked without a look at the queue.
    fn look_for_stranded(&self, level: &Arc<Level>) {
        if self.stranded.must_look() {
            let (stranded, runtime) = (self.stranded.clone(), self.handle.clone());
            let level = Arc::downgrade(level);
            // A worker that an empty task wakes looks at the whole queue.
            let wake = move || drop(runtime.spawn(async {}));
            ticker::at_each_tick(move || {
                let level = level.upgrade();
                level.is_some_and(|it| stranded.tick(|| it.has_queued(), &wake))
            });
        }
    }
}

impl Workers for CpuTokio {
    fn notify(&self, level: &Arc<Level>) {
        self.look_for_stranded(level);
        if !self.drain_tasks.try_add() {
            return;
        }
        giveway::note_activity();
        self.handle.spawn(DrainTask::new(level, &self.drain_tasks));
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
        for _ in 0..level.queue.len().min(self.drain_tasks.most()) {
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
