//! Tokio's cooperative budget for the futures that a rayon worker polls.
//!
//! Tokio starts a budget for each poll of its own tasks and of a `block_on`, and has no
//! public function for it. But a [`RestoreOnPending`] restores the budget of its thread to
//! what it was before [`poll_proceed`](coop::poll_proceed), whenever it is dropped. So a
//! worker takes one inside a `block_on`, once, and keeps it. To start a budget, it drops
//! that one and takes the next, at the cost of one of the 128 units.
//!
//! A poll inside a `block_on` of its own would do the same, but it locks a mutex of the
//! runtime, and no `block_on` works inside it. The `unconstrained` around a poll takes the budget
//! away after it: rayon's own work on the thread has none.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::mem::ManuallyDrop;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;
use tokio::task::coop::{self, RestoreOnPending};

thread_local! {
    /// Restores a full budget when it is dropped. `None` on a thread that polls futures
    /// inside Tokio's tasks, which have a budget.
    // `ManuallyDrop`: a destructor would make each access check whether it has run.
    static FULL: Cell<Option<ManuallyDrop<RestoreOnPending>>> = const { Cell::new(None) };
}

/// Call at the start of a thread that runs no task of Tokio's: each future of the lane that
/// it polls has a budget from then on.
pub(crate) fn enable(io: &Handle) {
    io.block_on(async { take_full() });
}

/// Call with a full budget.
fn take_full() {
    let mut cx = Context::from_waker(Waker::noop());
    if let Poll::Ready(full) = coop::poll_proceed(&mut cx) {
        FULL.set(Some(ManuallyDrop::new(full)));
    }
}

/// Polls the future with a budget. True if it is pending and has used that up.
pub(super) fn poll<F: Future>(
    future: Pin<&mut F>,
    cx: &mut Context<'_>,
) -> (Poll<F::Output>, bool) {
    let Some(full) = FULL.take() else {
        return poll_here(future, cx);
    };
    let mut all = Some((full, future));
    let poll = poll_fn(|cx| {
        let (full, future) = all.take().expect("it is ready at the first poll");
        drop(ManuallyDrop::into_inner(full));
        take_full();
        Poll::Ready(poll_here(future, cx))
    });
    match pin!(coop::unconstrained(poll)).poll(cx) {
        Poll::Ready(polled) => polled,
        Poll::Pending => unreachable!("it is ready at the first poll"),
    }
}

fn poll_here<F: Future>(future: Pin<&mut F>, cx: &mut Context<'_>) -> (Poll<F::Output>, bool) {
    let polled = future.poll(cx);
    let is_used_up = polled.is_pending() && !coop::has_budget_remaining();
    (polled, is_used_up)
}
