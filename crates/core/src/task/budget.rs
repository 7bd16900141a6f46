//! Tokio's cooperative budget for the futures that a rayon worker polls.
//!
//! Tokio starts a budget for each poll of its own tasks and of a `block_on`, and has no
//! public function for it. But a [`RestoreOnPending`] restores the budget of its thread to
//! what it was before [`poll_proceed`](coop::poll_proceed), whenever it is dropped. So a
//! worker takes one inside a `block_on`, once, and keeps it. To refill the budget, it drops
//! that one and takes the next, at the cost of one of the 128 units.
//!
//! A poll inside a `block_on` of its own would do the same, but it locks a mutex of the
//! runtime, and no `block_on` works inside it.
//!
//! A worker refills the budget after each poll, so that the next poll and the destructors
//! in between find it full. Rayon's own work has none: the worker [lifts](without) it around
//! that work, and around all that it does while it serves the lane, which ends the last
//! budget.

use std::cell::Cell;
use std::future::poll_fn;
use std::mem::ManuallyDrop;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use tokio::task::coop::{self, RestoreOnPending};

use super::ticker;

thread_local! {
    /// Restores a full budget when it is dropped. `None` on a thread that polls futures
    /// inside Tokio's tasks, which have a budget.
    // `ManuallyDrop`: a destructor would make each access check whether it has run.
    static FULL: Cell<Option<ManuallyDrop<RestoreOnPending>>> = const { Cell::new(None) };
}

/// Call at the start of a thread that runs no task of Tokio's: each future of the lane that
/// it polls has a budget from then on.
pub(crate) fn enable() {
    // Any runtime does.
    ticker::timers()
        .iter()
        .for_each(|runtime| runtime.block_on(async { take_full() }));
}

/// Call with a full budget.
fn take_full() {
    let mut cx = Context::from_waker(Waker::noop());
    if let Poll::Ready(full) = coop::poll_proceed(&mut cx) {
        FULL.set(Some(ManuallyDrop::new(full)));
    }
}

/// Calls `f` without a budget, and leaves the budget as it was before. The result is ready: a
/// `Poll` is what Tokio returns it in, and it may be too large to move once more.
pub(crate) fn without<R>(f: impl FnOnce() -> R) -> Poll<R> {
    let mut f = Some(f);
    let call = poll_fn(|_| f.take().map_or(Poll::Pending, |f| Poll::Ready(f())));
    pin!(coop::unconstrained(call)).poll(&mut Context::from_waker(Waker::noop()))
}

/// Gives this thread a full budget, if it is [enabled](enable).
pub(crate) fn refill() {
    if let Some(full) = FULL.take() {
        drop(ManuallyDrop::into_inner(full));
        take_full();
    }
}

/// Polls the future. True if it is pending and has used up its budget.
pub(super) fn poll<F: Future + ?Sized>(
    future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> (Poll<F::Output>, bool) {
    let polled = future.poll(cx);
    let is_used_up = polled.is_pending() && !coop::has_budget_remaining();
    refill();
    (polled, is_used_up)
}
