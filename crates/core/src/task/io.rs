//! [`IoJoin`]: the awaiting side of a future on the I/O lane, which is a Tokio task.
//!
//! Tokio does not say why it dropped a task. An abort by this crate sets a flag first. A task
//! that was dropped without it has lost its runtime.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use stallwatch::Name;
use tokio::task::{AbortHandle, JoinHandle};

use super::Cancel;
use crate::error::{CloseReason, JoinError};
use crate::panics::{self, PanicPayload};
use crate::sync::{AtomicBool, Ordering::SeqCst};

/// What a future on the I/O lane has made. If no awaiter takes it, its drop logs a panic: the
/// future's, or that of the output's destructor.
pub(crate) struct IoOutcome<T>(pub(crate) Option<Result<T, PanicPayload>>);

impl<T> Drop for IoOutcome<T> {
    fn drop(&mut self) {
        match self.0.take() {
            Some(Ok(output)) => panics::drop_quietly("the destructor of an unread output", output),
            Some(Err(payload)) => panics::report("a future on the I/O lane", &payload.text()),
            None => {}
        }
    }
}

pub(crate) struct IoJoin<T> {
    pub(super) task: JoinHandle<IoOutcome<T>>,
    /// Shared with the future: whether what it submits needs no permit. `None` if it never was so.
    pub(super) exempt: Option<Arc<AtomicBool>>,
    /// Made for the first `AbortHandle` or cancel.
    abort: OnceLock<Arc<Abort>>,
}

struct Abort {
    task: AbortHandle,
    is_requested: AtomicBool,
}

impl Cancel for Abort {
    fn cancel(self: Arc<Self>) -> Option<Name> {
        // Not if its runtime has dropped it: that is then the reason.
        if !self.task.is_finished() {
            self.is_requested.store(true, SeqCst);
            self.task.abort();
        }
        None
    }

    fn has_ended(&self) -> bool {
        self.task.is_finished()
    }
}

impl<T> IoJoin<T> {
    pub(crate) fn new(task: JoinHandle<IoOutcome<T>>, exempt: Option<Arc<AtomicBool>>) -> Self {
        Self {
            task,
            exempt,
            abort: OnceLock::new(),
        }
    }

    pub(super) fn as_cancel(&self) -> Arc<dyn Cancel> {
        let new = || Abort {
            task: self.task.abort_handle(),
            is_requested: AtomicBool::new(false),
        };
        self.abort.get_or_init(|| Arc::new(new())).clone()
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        let task = std::pin::Pin::new(&mut self.task);
        task.poll(cx).map(|ended| match ended {
            Ok(mut made) => {
                let made = made.0.take().expect("only this and the drop take it");
                made.map_err(JoinError::of_unwinding)
            }
            // The future catches its panics, and so does its drop: this is Tokio's own.
            Err(error) if error.is_panic() => Err(JoinError::from_panic(error.into_panic())),
            Err(_dropped) => {
                let aborted = self.abort.get().filter(|it| it.is_requested.load(SeqCst));
                let cause = aborted.map_or(CloseReason::IoRuntimeGone, |_| CloseReason::Cancelled);
                Err(cause.into())
            }
        })
    }
}
