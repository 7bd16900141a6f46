//! What a thread knows of the step that runs on it, for code that has no [`Worker`](super::Worker)
//! at hand: a future that yields, a wait, `in_cpu_context`.

use std::cell::Cell;

use super::ticker;

/// A step.
#[derive(Clone, Copy)]
pub(super) struct Running {
    is_running: bool,
    pub(super) yielded: bool,
    /// The job was polled in the CPU lane's own context, in this step or before: Tokio
    /// tasks that the lane drops may be part of it.
    pub(super) in_cpu_context: bool,
    /// The tick at which its slice began.
    slice_began: u32,
    /// How many steps this thread has begun.
    nth: u32,
}

thread_local! {
    static RUNNING: Cell<Running> = const {
        Cell::new(Running {
            is_running: false,
            yielded: false,
            in_cpu_context: false,
            slice_began: 0,
            nth: 0,
        })
    };
}

/// Marks this thread as running a job's step, until [`end`] gets what this returns, with the number
/// of the step on this thread. `in_cpu_context`: whether the job was polled there in an earlier step.
#[inline]
pub(super) fn begin(in_cpu_context: bool) -> (Running, u32) {
    let outer = RUNNING.get();
    let nth = outer.nth.wrapping_add(1);
    RUNNING.set(Running {
        is_running: true,
        yielded: false,
        in_cpu_context,
        slice_began: ticker::ticks(),
        nth,
    });
    (outer, nth)
}

/// Returns the step that has ended.
#[inline]
pub(super) fn end(outer: Running) -> Running {
    change(|step| step.is_running = outer.is_running)
}

/// Returns the step as it was.
#[inline]
fn change(change: impl FnOnce(&mut Running)) -> Running {
    let mut step = RUNNING.get();
    change(&mut step);
    RUNNING.replace(step)
}

pub(crate) fn is_a_job() -> bool {
    RUNNING.get().is_running
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

/// The step that runs on this thread, if any, polls in the CPU lane's own context.
pub(crate) fn set_in_cpu_context() {
    change(|step| step.in_cpu_context = true);
}

#[inline]
pub(super) fn is_slice_over() -> bool {
    ticker::is_slice_over(RUNNING.get().slice_began)
}
