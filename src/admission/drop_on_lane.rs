//! [`DropOnLane`]: a value of the CPU lane that another thread may be the last to hold.

use std::mem;
use std::ops::{Deref, DerefMut};

use crate::lane::Level;
use crate::panics;
use crate::task::{Schedule, closure};

/// Drops its value in a job of the CPU lane, as what a job has captured.
///
/// The job needs no permit: it gives memory back. There is none if the value has no
/// destructor, or if a thread of the lane drops it.
pub(crate) struct DropOnLane<T: Send + 'static> {
    level: Level,
    value: Option<T>,
}

const TAKEN: &str = "only `drop` takes the value";

impl<T: Send + 'static> DropOnLane<T> {
    pub(crate) fn new(level: &Level, value: T) -> Self {
        Self {
            level: level.clone(),
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
        let Some(value) = self.value.take() else {
            return;
        };
        if !mem::needs_drop::<T>() || self.level.is_own_worker() {
            return panics::drop_quietly("a destructor on the CPU lane", value);
        }
        super::take_on(&self.level, None, None, closure(move || drop(value))).detach_own();
    }
}
