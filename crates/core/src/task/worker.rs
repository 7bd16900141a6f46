//! [`Worker`]: the thread that runs jobs, as their steps see it. What is done before and after
//! each step, and what looks at it in between.
//!
//! [`Running`] is what the thread knows of its step, for code that has no worker at hand: a future
//! that yields, a wait, `in_cpu_context`.

use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use giveway::{Claim, Meter, Place, Throttle};
use stallwatch::Entered;

use super::counters::Page;
use super::head::Head;
use super::work::Link;
use super::{Event, Schedule, ticker};
use crate::limits::Charge;
use crate::metrics::call_sites::{Sample, Sites};
use crate::metrics::histogram::Timings;
use crate::pace::clock::nanos;
use crate::pace::{Popped, Shares, Step, Took};
use crate::priority::Priority;
use crate::sync::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst, thread_local};

thread_local! {
    // Not a field of the worker, which a thread of Tokio makes anew for each step.
    static METER: Meter = const { Meter::new() };
    static RUNNING: Cell<Running> = const {
        Cell::new(Running {
            is_running: false,
            yielded: false,
            priority: Priority::Normal,
            can_move: false,
            in_cpu_context: false,
            cancelled: false,
            slice_began: 0,
            nth: 0,
        })
    };
}

/// The thread that runs a job's step, as the step sees it.
///
/// It lives on the stack of the loop that drains the queue, and is passed down to each job. So a
/// step finds its counters, the lane's flag and its call sites at hand, and looks nothing up.
pub(crate) struct Worker<'a> {
    pub(crate) priority: Priority,
    /// Whether the lane is closed.
    pub(crate) closed: &'a AtomicBool,
    /// Set if the lane keeps a CPU quota where there is one.
    pub(crate) throttle: Option<&'a Throttle>,
    pub(crate) page: &'a Page,
    /// Whether other threads count on the same page.
    pub(crate) shares_page: bool,
    /// `None` if they are not recorded.
    pub(crate) timings: Option<&'a Timings>,
    pub(crate) sites: &'a Sites,
    /// Each step is a sample: the level has a limit in time.
    pub(crate) times_all: bool,
    pub(crate) shares: &'a Shares,
    pub(crate) popped: Popped,
    /// How long its step waited for the quota.
    pub(crate) paused: Duration,
    /// The step that runs, if it is measured.
    pub(crate) step: Option<(Step, Option<Sample<'a>>)>,
    /// Set if the threads of the level keep to different cores.
    pub(crate) place: Option<Place<'a>>,
    /// The last step yielded to the other jobs of the lane.
    pub(crate) yielded: bool,
    /// This thread is one of the lane's own Tokio runtime.
    pub(crate) is_beside_parts: bool,
}

impl<'a> Worker<'a> {
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    #[inline]
    pub(super) fn count(&self, event: Event) {
        if self.shares_page {
            self.page.add(event);
        } else {
            self.page.add_alone(event);
        }
    }

    /// Call before a step: waits while the process is about to use up its CPU quota, and takes a
    /// core that no other thread of the level has.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn get_ready(&mut self, has_ended: impl Fn() -> bool) {
        if let Some(throttle) = self.throttle {
            let claim = match self.priority {
                Priority::High => Claim::First,
                Priority::Normal => Claim::Shared,
                Priority::Low => Claim::Leftover,
            };
            let is_over = || self.is_closed() || has_ended();
            self.paused = METER.with(|meter| throttle.pause_if_due(meter, claim, is_over));
        }
        if let Some(place) = &mut self.place {
            place.settle();
        }
    }

    /// Call where the step's own code begins: all that look at it. Returns the watch's entry, for
    /// [`end`](Self::end).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn begin<S: Schedule>(
        &mut self,
        job: &Head<S>,
        link: Option<&Link>,
        is_closure: bool,
    ) -> Option<Entered> {
        // Relaxed, as for the registry key: the job's state orders one runner after the other.
        let in_cpu_context = link.is_some_and(|link| link.in_cpu_context.load(Relaxed));
        let can_move = link.is_some() && !self.is_beside_parts;
        let nth = begin(self.priority, can_move, in_cpu_context);
        let site = job.scheduler.site();
        let sample = self.sites.sample(site, nth, self.times_all);
        let is_measured = sample.is_some() || self.timings.is_some() || self.popped.turn.is_some();
        let began = match is_measured {
            true => self.measure(&job.queued_at, sample),
            false => 0,
        };
        self.page.set_step(site, began);
        let deadline = job.extras.deadline();
        job.scheduler.enter_step(is_closure, deadline)
    }

    /// Call where the step's own code has ended, and before the awaiter is told. Returns what it has
    /// asked.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn end<S: Schedule>(&mut self, watched: Option<Entered>, job: &Head<S>) -> Running {
        drop(watched);
        let ended = change(|step| step.is_running = false);
        if let Some((step, sample)) = self.step.take() {
            self.measured(&step.end(), sample, job.extras.charge());
            // Who awaits the job may look at what its key has used.
            if self.popped.turn.is_some() {
                job.scheduler.end_turn(&mut self.popped);
            }
        }
        ended
    }

    /// Returns when the step begins.
    #[cold]
    fn measure(&mut self, queued_at: &AtomicU64, sample: Option<Sample<'a>>) -> u64 {
        let step = Step::begin(self.paused);
        let queued = queued_at.load(Relaxed);
        // It may go on without having been queued again.
        queued_at.store(0, Relaxed);
        // At once: a reader counts the wait of a step that runs.
        if let Some(timings) = self.timings.filter(|_| queued != 0) {
            timings.waits.add(step.began.saturating_sub(queued));
        }
        self.step = Some((step, sample));
        step.began
    }

    /// Gives what the step took to all that ask.
    #[cold]
    fn measured(&mut self, took: &Took, sample: Option<Sample<'_>>, charge: Option<&Charge>) {
        let popped = &mut self.popped;
        if popped.turn.is_some() {
            popped.computed = took.computed;
        }
        if let Some(timings) = self.timings {
            timings.steps.add(nanos(took.ran));
        }
        if let Some(sample) = sample {
            let computed = sample.add(took);
            popped.is_short &= !sample.is_long();
            if !popped.has_key {
                self.shares.add(popped.is_short, computed);
            }
        }
        if let Some(charge) = charge {
            charge.count_step(took, popped.is_short);
        }
    }
}

/// A step, as its thread knows it.
#[derive(Clone, Copy)]
pub(super) struct Running {
    is_running: bool,
    pub(super) yielded: bool,
    /// That of the job: another one may run it.
    priority: Priority,
    /// The job may go on beside its parts.
    can_move: bool,
    /// The job was polled in the CPU lane's own context, in this step or before: Tokio
    /// tasks that the lane drops may be part of it.
    pub(super) in_cpu_context: bool,
    /// The step wants its job to end as one that was cancelled.
    pub(super) cancelled: bool,
    /// The tick at which its slice began.
    slice_began: u32,
    /// How many steps this thread has begun.
    nth: u32,
}

/// Marks this thread as running a job's step, until [`Worker::end`]. Returns the number of the step
/// on this thread. `in_cpu_context`: whether the job was polled there in an earlier step.
#[inline]
fn begin(priority: Priority, can_move: bool, in_cpu_context: bool) -> u32 {
    let last = RUNNING.with(Cell::get);
    // A worker pops jobs at the bottom of its stack alone (`pool/`).
    debug_assert!(!last.is_running, "a step inside another one");
    let nth = last.nth.wrapping_add(1);
    RUNNING.with(|running| {
        running.set(Running {
            is_running: true,
            yielded: false,
            priority,
            can_move,
            in_cpu_context,
            cancelled: false,
            slice_began: ticker::ticks(),
            nth,
        });
    });
    nth
}

/// Returns the step as it was.
#[inline]
fn change(change: impl FnOnce(&mut Running)) -> Running {
    RUNNING.with(|running| {
        let mut step = running.get();
        change(&mut step);
        running.replace(step)
    })
}

pub(crate) fn is_running() -> bool {
    RUNNING.with(Cell::get).is_running
}

/// The step yields, and the next slice of its job begins. (Outside of a job, that of the thread.)
pub(super) fn begin_slice() {
    let now = ticker::ticks();
    change(|step| (step.yielded, step.slice_began) = (true, now));
}

/// The step that has just ended on this thread yielded by other means than a
/// [`Yield`](super::yields::Yield).
pub(crate) fn set_yielded() {
    change(|step| step.yielded = true);
}

/// The step that runs on this thread, if any, polls in the CPU lane's own context. Returns its priority,
/// and whether it has to yield: its job goes on beside the parts that it spawns there.
pub(crate) fn set_in_cpu_context() -> Option<(Priority, bool)> {
    let step = change(|step| step.in_cpu_context = true);
    step.is_running.then_some((step.priority, step.can_move))
}

/// Cancels the job whose step runs on this thread, if the step ends without an output: for the jobs
/// of a stream whose reader is gone.
pub fn cancel_job() {
    change(|step| step.cancelled = true);
}

#[inline]
pub(super) fn is_slice_over() -> bool {
    ticker::is_slice_over(RUNNING.with(Cell::get).slice_began)
}
