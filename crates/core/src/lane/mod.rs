//! The CPU lane of one `CpuRuntime`: what its priorities share, and how the lane closes.
//!
//! **How a lane closes.** [`Lane::close`] sets `closed` and sends a message. The
//! control thread (see `control.rs`) then closes every queued and suspended job, which
//! notifies their awaiters, and has another thread, the reaper, drop what they have
//! captured. A worker that pops a job first closes and drops it itself. No job is
//! missed:
//!
//! - A thread that pushes a job looks at `closed` *after* the push. Either the control
//!   thread finds the job, or the pushing thread sees `closed` and sends a message, so
//!   that the control thread closes the queue once more. If the control thread has
//!   ended, the pushing thread closes the queue itself.
//! - An active worker that puts back the job that it has just run does not look at
//!   `closed`. It goes on to pop jobs until the queue is empty.
//! - A worker looks at `closed` after it has suspended a job (`Head::pause`, in `task/head.rs`).
//! - `closed` is set before anything is dropped. So a future that has Tokio tasks on the
//!   lane, and finds it open after its last step, has lost none of them. Otherwise it ends
//!   as if it were suspended in that step (`Job::compute`, in `task/step.rs`).
//! - A running closure cannot be stopped. Its task resolves when it returns.
//!
//! **Orderings.** `closed` is `SeqCst`, with a fence after the write and before the
//! reads that follow a push. The above relies on one total order of the flag's change
//! and the pushes. `alive` and `lost` are `SeqCst` because they are rarely used; a
//! weaker ordering is not worth its proof.

mod companion;
pub(crate) mod control;
mod help;
mod keyed;
mod launcher;
mod level;
mod levels;
mod queue;
mod registry;
mod scheduler;
mod submitter;
pub(crate) mod thread;
mod watched;
mod workers;

use std::io;
use std::sync::{Arc, OnceLock, Weak};

use giveway::Throttle;
use stallwatch::Pool;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::error::CloseReason;
use crate::io_lane::IoLane;
use crate::metrics::io_watch::IoWatch;
use crate::panics;
use crate::sync::mpsc::Sender;
use crate::sync::{AtomicBool, AtomicUsize, Ordering::SeqCst, fence};
use crate::task::{JOB_DESTRUCTOR, Runnable};
use crate::trace;
use control::Message;
#[cfg(test)]
#[allow(unused_imports, reason = "for the model")]
pub(crate) use launcher::Start;
pub(crate) use launcher::Threads;
pub(crate) use level::Level;
pub(crate) use levels::Levels;
#[cfg(test)]
#[allow(unused_imports, reason = "for the model")]
pub(crate) use queue::RunQueue;
use registry::Registry;
pub(crate) use submitter::Submitter;
pub(crate) use workers::{ThreadSettings, Workers};

pub(crate) struct Lane {
    registry: Registry,
    pub(crate) settings: ThreadSettings,
    /// Of the I/O lane, if it is watched.
    pub(crate) io_watch: IoWatch,
    /// The jobs, as that watch sees them.
    pub(crate) watched_jobs: [Pool; 3],
    closed: AtomicBool,
    /// A semaphore without permits: a wait for one ends when the lane closes.
    closing: Arc<Semaphore>,
    /// Why it was closed, if not by a call: its owner was dropped, or its I/O runtime is gone.
    close_cause: OnceLock<CloseReason>,
    /// Lane threads that have started, or are about to start, and have not ended; and `build`,
    /// until it has started them.
    alive: AtomicUsize,
    /// Detached jobs that were closed and are not yet reported in the log.
    lost: AtomicUsize,
    /// The error of the first thread that could not set its nice value.
    pub(crate) nice_refused: OnceLock<io::Error>,
    /// Set if the lane keeps a CPU quota where there is one.
    pub(crate) throttle: Option<Throttle>,
    control: Sender<Message>,
    pub(crate) io: IoLane,
}

impl Lane {
    pub(crate) fn new(
        settings: ThreadSettings,
        throttle: Option<Throttle>,
        io: Option<Handle>,
        control: Sender<Message>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|lane: &Weak<Self>| Self {
            registry: Registry::default(),
            io_watch: IoWatch::default(),
            settings,
            watched_jobs: watched::watched_jobs(),
            closed: AtomicBool::new(false),
            closing: Arc::new(Semaphore::new(0)),
            close_cause: OnceLock::new(),
            alive: AtomicUsize::new(1),
            lost: AtomicUsize::new(0),
            nice_refused: OnceLock::new(),
            throttle,
            control,
            io: {
                let lane = lane.clone();
                IoLane::watch(io, move || {
                    if let Some(lane) = lane.upgrade() {
                        lane.close_because(CloseReason::IoRuntimeGone);
                    }
                })
            },
        })
    }

    /// Returns why a submission is refused now, if it is.
    #[inline]
    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        let cause = || *self.close_cause.get().unwrap_or(&CloseReason::ShutDown);
        self.is_closed().then(cause)
    }

    /// Why the jobs end that the lane has taken on, if it is closed.
    fn reason_for_jobs(&self) -> CloseReason {
        match self.close_cause.get() {
            Some(gone @ CloseReason::IoRuntimeGone) => *gone,
            _ => CloseReason::ShutDown,
        }
    }

    /// As `close_reason`, for a caller that has found the workers or a semaphore closed.
    pub(crate) fn reason_once_closed(&self) -> CloseReason {
        self.close_reason().unwrap_or(CloseReason::ShutDown)
    }

    /// Ready when the lane closes.
    pub(crate) fn closing(&self) -> impl Future<Output = ()> + Send + use<> {
        let closing = self.closing.clone();
        async move { drop(closing.acquire().await) }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    /// Stops admission; the control thread does the rest. Never blocks. Any thread may
    /// call it, any number of times.
    pub(crate) fn close(&self) {
        if !self.closed.swap(true, SeqCst) {
            // Pairs with the fence in `Level::enqueue`, which reads `closed` after its
            // push.
            fence(SeqCst);
            // An error means that the control thread has ended. It only ends after a
            // close.
            let _ = self.send_control(Message::Shutdown);
        }
    }

    /// Closes a lane that was not shut down. Jobs that it has taken on end as in a shutdown; new
    /// ones are refused for what has happened.
    pub(crate) fn close_because(&self, cause: CloseReason) {
        if !self.is_closed() {
            let _ = self.close_cause.set(cause);
            self.close();
        }
    }

    pub(crate) fn send_control(&self, message: Message) -> Result<(), Message> {
        self.control.send(message).map_err(|unsent| unsent.0)
    }

    /// Logs how many detached jobs were closed, in one line for all of them.
    fn report_lost(&self) {
        let jobs = self.lost.swap(0, SeqCst);
        if jobs > 0 {
            // A subscriber may panic, and the caller still has closed jobs to drop.
            panics::run_hook("the log", || trace::warn_of_lost_jobs(jobs));
        }
    }

    /// A lane thread calls this last, and `build` once it has started them.
    pub(crate) fn thread_ended(&self) {
        self.alive.fetch_sub(1, SeqCst);
        let _ = self.send_control(Message::ThreadEnded);
    }

    /// Logs it once, and shows it in the lane's `Debug` output. Jobs run all the same.
    pub(crate) fn note_refused_nice(&self, nice: i32, refused: io::Error) {
        let text = refused.to_string();
        if self.nice_refused.set(refused).is_ok() {
            panics::run_hook("the log", || trace::warn_of_refused_nice(nice, &text));
        }
    }
}

/// Closes jobs, which resolves their tasks, except those that run. It does not drop their work.
fn close_all(jobs: &[Arc<dyn Runnable>], reason: CloseReason) {
    jobs.iter().for_each(|job| job.close(reason));
}

/// Drops the work of those jobs that are closed, by the caller or an earlier cancel.
fn discard(jobs: Vec<Arc<dyn Runnable>>) {
    for job in jobs {
        panics::run_hook(JOB_DESTRUCTOR, move || {
            // The work of a job that still runs belongs to the thread that runs it.
            if job.has_ended() {
                job.discard();
            }
        });
    }
}
