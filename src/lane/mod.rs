//! The CPU lane of one `CpuRuntime`: its priorities, what they share, and how
//! it closes.
//!
//! How a lane closes, and why no job falls between: `close` sets `closed`, and
//! the control thread (see `control.rs`) then resolves every queued and suspended job. A
//! pusher looks at `closed` *after* the push: either the control thread's sweep sees the
//! job, or the pusher sees `closed` and asks for another sweep. (Not a drainer that
//! puts back what it has run: it goes on to take it out again.) A runner looks at
//! `closed` after it has paused a job (see `Job::pause`). A running closure cannot
//! be stopped; its task resolves when it returns.
//!
//! Orderings: `closed` is `SeqCst` with a fence on either side, since the above
//! rests on one order of the flag's change and the pushes. `alive` and `lost` are
//! `SeqCst` because they are rare, and not worth a proof of less.

pub(crate) mod control;
mod counters;
mod hooks;
pub(crate) mod inherit;
mod level;
mod queue;
mod registry;
pub(crate) mod thread;
mod workers;

use std::io;
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::CloseReason;
use crate::io_lane::IoLane;
use crate::os::nice;
use crate::os::throttle::Throttle;
use crate::panics;
use crate::priority::Priority;
use crate::sync::{AtomicBool, AtomicUsize, Ordering::SeqCst, fence};
use crate::task::{JOB_DESTRUCTOR, Run};
use control::Message;
pub(crate) use hooks::ThreadHooks;
pub(crate) use level::Level;
use registry::Registry;
pub(crate) use workers::{ThreadSettings, Workers};

pub(crate) struct Lane {
    levels: [level::LevelState; Priority::ALL.len()],
    registry: Registry,
    pub(crate) settings: ThreadSettings,
    closed: AtomicBool,
    /// Threads that have started (or are about to) and not yet ended.
    alive: AtomicUsize,
    /// Jobs that were detached and closed, since the log was told.
    lost: AtomicUsize,
    /// Why the first thread that tried could not set its weight.
    nice_refused: OnceLock<io::Error>,
    /// Where a CPU quota has to be kept.
    throttle: Option<Throttle>,
    control: Sender<Message>,
    pub(crate) io: IoLane,
}

impl Lane {
    pub(crate) fn new(
        settings: ThreadSettings,
        queue_limits: [Option<usize>; Priority::ALL.len()],
        throttle: Option<Throttle>,
        io: IoLane,
        control: Sender<Message>,
    ) -> Arc<Self> {
        Arc::new(Self {
            levels: queue_limits.map(|limit| level::LevelState::new(settings.threads, limit)),
            registry: Registry::default(),
            settings,
            closed: AtomicBool::new(false),
            alive: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
            nice_refused: OnceLock::new(),
            throttle,
            control,
            io,
        })
    }

    fn level_state(&self, priority: Priority) -> &level::LevelState {
        &self.levels[priority.index()]
    }

    /// The priorities that have threads.
    pub(crate) fn started(&self) -> impl Iterator<Item = Priority> {
        let is_started = |p: &Priority| self.level_state(*p).workers.get().is_some();
        Priority::ALL.into_iter().filter(is_started)
    }

    /// Why a job may not be submitted now, if so.
    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        if self.is_closed() {
            Some(CloseReason::ShutDown)
        } else if self.io.is_gone() {
            Some(CloseReason::IoRuntimeGone)
        } else {
            None
        }
    }

    /// How many jobs run.
    pub(crate) fn running(&self) -> u64 {
        self.levels
            .iter()
            .map(|level| level.counters.running())
            .sum()
    }

    /// Whether any priority has a limit.
    fn has_limits(&self) -> bool {
        self.limits().next().is_some()
    }

    fn has_issued(&self, permit: &OwnedSemaphorePermit) -> bool {
        self.limits()
            .any(|limit| Arc::ptr_eq(limit, permit.semaphore()))
    }

    /// Those that wait for a permit learn that there will be none.
    fn close_limits(&self) {
        for limit in self.limits() {
            // A waker that panics keeps the semaphore from waking those behind it: once
            // more, for these.
            while panics::call_logged("the waker of an `Admit`", || limit.close()).is_none() {}
        }
    }

    fn limits(&self) -> impl Iterator<Item = &Arc<Semaphore>> {
        self.levels.iter().filter_map(|level| level.limit.as_ref())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    /// Stops admission; the control thread does the rest. Never blocks; may be called
    /// often and from anywhere.
    pub(crate) fn close(&self) {
        if !self.closed.swap(true, SeqCst) {
            // Against `Level::enqueue`, which looks after a fence of its own.
            fence(SeqCst);
            // An error means that the control thread has gone, which it only does
            // after a close.
            let _ = self.send_control(Message::Shutdown);
        }
    }

    pub(crate) fn send_control(&self, message: Message) -> Result<(), Message> {
        self.control.send(message).map_err(|unsent| unsent.0)
    }

    /// Closes all that is queued and tells the awaiters. The destructors of the
    /// user's are still to run ([`discard`](Self::discard)): one may block.
    fn close_queued(&self) -> Vec<Arc<dyn Run>> {
        let levels = self.levels.iter();
        levels
            .flat_map(|level| level.close_queued(CloseReason::ShutDown))
            .collect()
    }

    /// The same for what is registered. A job in the registry may rest in the queue
    /// just as well: its waker may have been called.
    fn close_registered(&self) -> Vec<Arc<dyn Run>> {
        let jobs = self.registry.all();
        for job in &jobs {
            job.close(CloseReason::ShutDown);
        }
        jobs
    }

    /// Drops the work of jobs that were closed, here or by a cancel before.
    fn discard(jobs: Vec<Arc<dyn Run>>) {
        for job in jobs {
            panics::run_hook(JOB_DESTRUCTOR, move || {
                // One that runs is its runner's.
                if job.has_ended() {
                    job.discard();
                }
            });
        }
    }

    fn count_lost(&self) {
        self.lost.fetch_add(1, SeqCst);
    }

    /// Logs the jobs that were detached and closed, in one line for many.
    fn report_lost(&self) {
        let jobs = self.lost.swap(0, SeqCst);
        if jobs > 0 {
            // The log is foreign code, and the caller has jobs in hand.
            panics::run_hook("the log", || crate::trace::warn_of_lost_jobs(jobs));
        }
    }

    fn reap_queued(&self) {
        Self::discard(self.close_queued());
        self.report_lost();
    }

    /// Lets the threads go. Only the control thread calls it: it may block for a moment.
    fn shutdown_workers(&self) {
        for level in &self.levels {
            if let Some(workers) = level.workers.get() {
                workers.shutdown();
            }
        }
    }

    /// Counted from before the thread is spawned.
    pub(crate) fn thread_started(&self) {
        self.alive.fetch_add(1, SeqCst);
    }

    /// The last thing a thread of the lane does.
    pub(crate) fn thread_ended(&self) {
        self.alive.fetch_sub(1, SeqCst);
        let _ = self.send_control(Message::ThreadEnded);
    }

    /// Whether it is closed and its last thread has ended.
    fn is_over(&self) -> bool {
        let is_left =
            |level: &level::LevelState| level.workers.get().is_none_or(|w| w.is_shut_down());
        self.is_closed() && self.levels.iter().all(is_left) && self.alive.load(SeqCst) == 0
    }

    /// Gives this thread the weight of `priority`. What it can't do it tells
    /// once, in the log and in the lane's `Debug`: jobs run all the same.
    pub(crate) fn set_thread_niceness(&self, priority: Priority) {
        let niceness = self.settings.niceness[priority.index()];
        if let Err(refused) = nice::apply(niceness) {
            self.note_refused_nice(niceness.nice, refused);
        }
    }

    fn note_refused_nice(&self, nice: i32, refused: io::Error) {
        let mut first = false;
        let refused = self.nice_refused.get_or_init(|| {
            first = true;
            refused
        });
        if first {
            crate::trace::warn_of_refused_nice(nice, refused);
        }
    }

    /// The CPU quota that is kept, if there is one.
    pub(crate) fn throttled_to_cores(&self) -> Option<f64> {
        self.throttle.as_ref().map(|throttle| throttle.quota.cores)
    }

    pub(crate) fn nice_refused(&self) -> Option<&io::Error> {
        self.nice_refused.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Raising a nice value is refused in sandboxes only, so this pretends.
    #[test]
    fn a_refused_weight_is_told_once_and_shows() {
        let io = tokio::runtime::Runtime::new().unwrap();
        let settings = crate::CpuRuntime::builder().io_handle(io.handle().clone());
        let cpu = settings.build().unwrap();
        let lane = cpu.handle().level().lane().clone();
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
