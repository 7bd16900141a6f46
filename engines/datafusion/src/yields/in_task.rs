//! How a stream yields in a task of Tokio's.
//!
//! A task that wakes itself goes to its worker's own queue, and the worker looks at what comes from
//! elsewhere once in 61 polls: the drop of the query would wait for 61 slices. Tokio's own
//! [`yield_now`](tokio::task::yield_now) has the worker look elsewhere first. A job of the lane wakes
//! itself, for the lane has a queue of its own.

use std::cell::Cell;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

thread_local! {
    static IN_TASK: Cell<bool> = const { Cell::new(false) };
}

/// A future that is a task of Tokio's.
pub struct InTask<F>(pub F);

impl<F: Future + Unpin> Future for InTask<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // A panic leaves it set, and the task that the thread polls next may be a job: it yields all
        // the same.
        let before = IN_TASK.replace(true);
        let polled = Pin::new(&mut self.0).poll(cx);
        IN_TASK.set(before);
        polled
    }
}

/// Has the task that is polled here yield.
pub fn poll_yield(cx: &mut Context<'_>) -> Poll<()> {
    if IN_TASK.get() {
        pin!(tokio::task::yield_now()).poll(cx)
    } else {
        pin!(twolane_core::yield_now()).poll(cx)
    }
}
