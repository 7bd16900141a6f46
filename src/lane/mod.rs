//! The CPU lane of one `CpuRuntime`: its priorities, what they share, and how
//! it closes.
//!
//! How a lane closes, and why no job falls between: `close` sets `closed`, and
//! the warden (see `warden.rs`) then resolves every queued and suspended job.
//! Whoever pushes looks at `closed` *after* the push: either the warden's sweep
//! sees the job, or the pusher sees `closed` and asks for another sweep. (Not a
//! drainer that puts back what it has run: it goes on to take it out again.) A
//! runner looks at `closed` after it has paused a job (see `Job::pause`). A
//! running closure is nobody's to stop: its own end resolves it.

mod books;
mod brisk;
mod deadlines;
mod gate;
mod level;
mod opening;
mod place;
mod queue;
mod suspended;
mod timings;

use std::io;
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use crate::backend::ThreadSettings;
use crate::io::lane::IoLane;
use crate::job::Run;
use crate::job::state::Cause;
use crate::os::fork::Process;
use crate::os::pacer::Pacer;
use crate::os::weight;
use crate::panics;
use crate::priority::Priority;
use crate::sync::{AtomicBool, AtomicUsize, Ordering::SeqCst, fence};
use crate::warden::Order;
pub(crate) use books::Step;
pub(crate) use deadlines::{Expire, Millis, Schedule};
pub(crate) use gate::{Outcome, Waiter};
pub(crate) use level::Level;
pub(crate) use place::{Place, WeakPlace};

use deadlines::Deadlines;
use suspended::Suspended;

pub(crate) const LEFT_BEHIND: &str = "what a job left behind";

pub(crate) struct Lane {
    levels: [level::State; Priority::ALL.len()],
    /// Whether any of them has a limit.
    pub(crate) has_gates: bool,
    pub(crate) suspended: Suspended,
    pub(crate) settings: ThreadSettings,
    deadlines: Deadlines,
    pub(crate) process: Process,
    /// Of the deadlines' clock.
    epoch: Instant,
    closed: AtomicBool,
    /// Threads that have started (or are about to) and not yet ended.
    alive: AtomicUsize,
    /// Jobs that were detached and closed, since the log was told.
    lost: AtomicUsize,
    /// Why the first thread that tried could not set its weight.
    nice_refused: OnceLock<io::Error>,
    /// Where a CPU quota has to be kept.
    pacer: Option<Pacer>,
    warden: Sender<Order>,
    pub(crate) io: IoLane,
}

impl Lane {
    pub(crate) fn new(
        settings: ThreadSettings,
        queue_limits: [Option<usize>; Priority::ALL.len()],
        pacer: Option<Pacer>,
        io: IoLane,
        warden: Sender<Order>,
    ) -> Arc<Self> {
        Arc::new(Self {
            has_gates: queue_limits.iter().any(Option::is_some),
            levels: queue_limits.map(|limit| level::State::new(settings.threads, limit)),
            suspended: Suspended::default(),
            deadlines: Deadlines::new(),
            process: Process::this(),
            epoch: Instant::now(),
            settings,
            closed: AtomicBool::new(false),
            alive: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
            nice_refused: OnceLock::new(),
            pacer,
            warden,
            io,
        })
    }

    fn state_of(&self, priority: Priority) -> &level::State {
        &self.levels[priority.index()]
    }

    /// The priorities that have threads.
    pub(crate) fn started(&self) -> impl Iterator<Item = Priority> {
        let is_started = |p: &Priority| self.state_of(*p).threads().is_some();
        Priority::ALL.into_iter().filter(is_started)
    }

    /// Why a job may not be submitted now, if so.
    pub(crate) fn refusal(&self) -> Option<Cause> {
        if self.is_closed() {
            Some(Cause::ShutDown)
        } else if self.io.is_gone() {
            Some(Cause::IoRuntimeGone)
        } else {
            None
        }
    }

    /// How many threads run a job, or drop what one left behind.
    pub(crate) fn busy_threads(&self) -> usize {
        self.levels.iter().map(level::State::busy_threads).sum()
    }

    /// Sees to it that `whose` is ended at that time, if it is there still. (Times
    /// beyond what a clock can express never come.)
    pub(crate) fn end_at(&self, at: Instant, whose: Weak<dyn Expire>) {
        let millis = at
            .saturating_duration_since(self.epoch)
            .as_nanos()
            .div_ceil(1_000_000);
        let millis = Millis::try_from(millis).unwrap_or(Millis::MAX);
        if self.deadlines.leave(millis, whose) {
            // An error means that the lane is closed and over.
            let _ = self.tell_warden(Order::LookAtClock);
        }
    }

    /// The warden's: ends what is due, and says when to look again.
    pub(crate) fn end_what_is_due(&self, schedule: &mut Schedule) -> Option<Instant> {
        let now = Millis::try_from(self.epoch.elapsed().as_millis()).unwrap_or(Millis::MAX);
        let (due, next) = schedule.look(&self.deadlines, now);
        for whose in due.iter().filter_map(Weak::upgrade) {
            panics::run_hook("what a deadline called", || whose.expire());
        }
        next.and_then(|next| self.epoch.checked_add(Duration::from_millis(next)))
    }

    /// Those who wait for a place learn that there will be none.
    pub(crate) fn close_gates(&self) {
        for gate in self.levels.iter().filter_map(level::State::gate) {
            gate.close();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    /// Stops admission; the warden does the rest. Never blocks; may be called
    /// often and from anywhere.
    pub(crate) fn close(&self) {
        if !self.closed.swap(true, SeqCst) {
            // Against `Level::enqueue`, which looks after a fence of its own.
            fence(SeqCst);
            // An error means that the warden has gone, which it only does
            // after a close.
            let _ = self.tell_warden(Order::Shutdown);
        }
    }

    pub(crate) fn tell_warden(&self, order: Order) -> Result<(), Order> {
        self.warden.send(order).map_err(|unsent| unsent.0)
    }

    /// Closes all that is queued and tells the awaiters. The destructors of the
    /// user's are still to run ([`discard`](Self::discard)): one may block.
    pub(crate) fn close_queued(&self) -> Vec<Arc<dyn Run>> {
        let queued = |level| std::iter::from_fn(move || level::State::pop(level));
        let jobs: Vec<_> = self.levels.iter().flat_map(queued).collect();
        for job in &jobs {
            job.close(Cause::ShutDown);
        }
        jobs
    }

    /// The same for the suspended ones. A job in the registry may rest in the
    /// queue just as well: its waker may have been called.
    pub(crate) fn close_suspended(&self) -> Vec<Arc<dyn Run>> {
        let jobs = self.suspended.all();
        for job in &jobs {
            job.close(Cause::ShutDown);
        }
        jobs
    }

    /// Drops the work of jobs that were closed, here or by a cancel before.
    pub(crate) fn discard(jobs: Vec<Arc<dyn Run>>) {
        for job in jobs {
            // One that runs is its runner's.
            if job.has_ended() {
                panics::run_hook(LEFT_BEHIND, move || job.discard());
            }
        }
    }

    pub(crate) fn note_lost(&self) {
        self.lost.fetch_add(1, SeqCst);
    }

    /// Tells the log what nobody else was told, in one line for many jobs.
    pub(crate) fn report_lost(&self) {
        let jobs = self.lost.swap(0, SeqCst);
        if jobs > 0 {
            crate::trace::warn_of_lost_jobs(jobs);
        }
    }

    pub(crate) fn sweep_queues(&self) {
        Self::discard(self.close_queued());
        self.report_lost();
    }

    /// Lets the threads go. Only the warden calls it: it may block for a moment.
    pub(crate) fn retire_threads(&self) {
        for threads in self.levels.iter().filter_map(level::State::threads) {
            threads.retire();
        }
    }

    /// Counted from before the thread is spawned.
    pub(crate) fn thread_started(&self) {
        self.alive.fetch_add(1, SeqCst);
    }

    /// The last thing a thread of the lane does.
    pub(crate) fn thread_ended(&self) {
        self.alive.fetch_sub(1, SeqCst);
        let _ = self.tell_warden(Order::ThreadEnded);
    }

    /// Whether it is closed and its last thread has ended.
    pub(crate) fn is_over(&self) -> bool {
        let retired = |level: &level::State| level.threads().is_none_or(|t| t.is_retired());
        self.is_closed() && self.levels.iter().all(retired) && self.alive.load(SeqCst) == 0
    }

    /// Gives this thread the weight of `priority`. What it can't do it tells
    /// once, in the log and in the lane's `Debug`: jobs run all the same.
    pub(crate) fn weigh_thread(&self, priority: Priority) {
        let weight = self.settings.weights[priority.index()];
        if let Err(refused) = weight::take_on(weight) {
            self.note_refused_nice(weight.nice, refused);
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
    pub(crate) fn paced_to_cores(&self) -> Option<f64> {
        self.pacer.as_ref().map(|pacer| pacer.quota.cores)
    }

    pub(crate) fn nice_refused(&self) -> Option<&io::Error> {
        self.nice_refused.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each has an hour's time from its submission, and ends at once: the first of
    /// them does not keep the memory of the others for an hour.
    #[test]
    fn deadlines_of_jobs_that_have_ended_are_thrown_out() {
        struct Ended;
        impl Expire for Ended {
            fn expire(self: Arc<Self>) {}
        }
        let (deadlines, mut schedule) = (Deadlines::new(), Schedule::new());
        for n in 0..100_000 {
            if deadlines.leave(3_600_000 + n, Weak::<Ended>::new()) {
                schedule.look(&deadlines, 0);
            }
            assert!(schedule.all(&deadlines) < 5_000);
        }
    }

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
