//! [`IoJoin`]: the awaiting side of a future on the I/O lane, which is a Tokio task.
//!
//! Tokio does not say why it dropped a task. An abort by this crate sets a flag first. A task
//! that was dropped without it has lost its runtime.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use tokio::task::{AbortHandle, JoinHandle};

use super::Cancel;
use crate::error::{CloseReason, JoinError};
use crate::panics::{self, PanicPayload};
use crate::sync::{AtomicBool, Ordering::SeqCst};

/// The panic of a future on the I/O lane. If no awaiter takes it, its drop logs it.
pub(crate) struct Panicked(Option<PanicPayload>);

impl Panicked {
    pub(crate) fn new(payload: PanicPayload) -> Self {
        Self(Some(payload))
    }
}

impl Drop for Panicked {
    fn drop(&mut self) {
        if let Some(payload) = self.0.take() {
            panics::report("a future on the I/O lane", &payload.text());
        }
    }
}

pub(crate) struct IoJoin<T> {
    task: JoinHandle<Result<T, Panicked>>,
    /// Made for the first `AbortHandle` or cancel.
    abort: OnceLock<Arc<Abort>>,
}

struct Abort {
    task: AbortHandle,
    is_requested: AtomicBool,
}

impl Cancel for Abort {
    fn cancel(self: Arc<Self>) {
        // Not if its runtime has dropped it: that is then the reason.
        if !self.task.is_finished() {
            self.is_requested.store(true, SeqCst);
            self.task.abort();
        }
    }

    fn has_ended(&self) -> bool {
        self.task.is_finished()
    }
}

impl<T> IoJoin<T> {
    pub(crate) fn new(task: JoinHandle<Result<T, Panicked>>) -> Self {
        let abort = OnceLock::new();
        Self { task, abort }
    }

    pub(super) fn as_cancel(&self) -> Arc<dyn Cancel> {
        let new = || Abort {
            task: self.task.abort_handle(),
            is_requested: AtomicBool::new(false),
        };
        self.abort.get_or_init(|| Arc::new(new())).clone()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Aborts the future of a `Task` that is dropped.
    pub(super) fn abort(self) {
        self.task.abort();
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        let task = std::pin::Pin::new(&mut self.task);
        task.poll(cx).map(|ended| match ended {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(mut panicked)) => {
                let payload = panicked.0.take().expect("only this and the drop take it");
                Err(JoinError::of_unwinding(payload))
            }
            // The future catches its panics, and so does its drop.
            Err(_dropped) => Err(self.reason_of_drop().into()),
        })
    }

    fn reason_of_drop(&self) -> CloseReason {
        let abort = self.abort.get();
        match abort.is_some_and(|abort| abort.is_requested.load(SeqCst)) {
            true => CloseReason::Cancelled,
            false => CloseReason::IoRuntimeGone,
        }
    }
}
