//! [`DropOnLane`]: a value of the CPU lane that another thread may be the last to hold.

use std::ops::{Deref, DerefMut};

use twolane_core::{Handle, adapters};

/// Dropped on the lane: a destructor may be a long computation, and may call what only a job
/// should.
pub(crate) struct DropOnLane<T: Send + 'static> {
    handle: Handle,
    value: Option<T>,
}

const TAKEN: &str = "only `drop` takes the value";

impl<T: Send + 'static> DropOnLane<T> {
    pub(crate) fn new(handle: &Handle, value: T) -> Self {
        Self {
            handle: handle.clone(),
            value: Some(value),
        }
    }
}

impl<T: Send + 'static> Deref for DropOnLane<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect(TAKEN)
    }
}

impl<T: Send + 'static> DerefMut for DropOnLane<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect(TAKEN)
    }
}

impl<T: Send + 'static> Drop for DropOnLane<T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            adapters::drop_on_lane(&self.handle, value);
        }
    }
}
