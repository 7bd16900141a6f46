//! What the consumer of a stream holds of its other ends: the pump, and what is under way.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use twolane_core::{Handle, JoinError, Task};

use super::drop_on_lane::DropOnLane;
use super::shared::Shared;

/// The other ends of a stream, whatever its inputs.
pub(super) trait Running: Send + Sync {
    fn give_back(&self, items: usize, bytes: usize);
    fn under_way(&self) -> (usize, usize);
    fn cancel(&self);
    /// The error by which the pump's task ends, after the pump was dropped on an open lane.
    fn poll_pump(&mut self, cx: &mut Context<'_>) -> Poll<JoinError>;
}

/// Keeps the pump; its drop drops the source.
pub(super) struct Ends<I, O> {
    pub(super) handle: Handle,
    pub(super) shared: Arc<Shared<I, O>>,
    pub(super) pump: Task<()>,
}

impl<I: Send + 'static, O: Send> Running for Ends<I, O> {
    fn give_back(&self, items: usize, bytes: usize) {
        self.shared.window.give_back(items, bytes);
    }

    fn under_way(&self) -> (usize, usize) {
        (self.shared.window.items(), self.shared.window.bytes())
    }

    fn cancel(&self) {
        self.pump.abort();
        let inputs = self.shared.cancel();
        if mem::needs_drop::<I>() && !inputs.is_empty() {
            drop(DropOnLane::new(&self.handle, inputs));
        }
    }

    fn poll_pump(&mut self, cx: &mut Context<'_>) -> Poll<JoinError> {
        match ready!(Pin::new(&mut self.pump).poll(cx)) {
            Err(error) => Poll::Ready(error),
            Ok(()) => unreachable!("a pump that was dropped has not ended"),
        }
    }
}
