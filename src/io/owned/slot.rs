//! Where the value of an [`IoOwned`](super::IoOwned) is kept, and the order in which the tasks of
//! the I/O lane get it.
//!
//! **Obligations.** [safety] Tasks get the value in the order in which they were submitted, one at
//! a time. [safety] The value is dropped once, inside the last task, or without it if the runtime
//! is gone. [liveness] A task that is dropped before its turn, or before its first poll, does not
//! keep the others from theirs.

use std::any::type_name;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::coop;
use twolane_core::adapters::{drop_quietly, run_hook};

const DESTRUCTOR: &str = "the destructor of a value on the I/O lane";
const PRESENT: &str = "the call that takes the value is the last one";

pub(crate) struct Slot<T> {
    value: Option<T>,
    io: Handle,
}

impl<T> Slot<T> {
    pub(crate) fn new(value: T, io: Handle) -> Self {
        let value = Some(value);
        Self { value, io }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.value.is_none()
    }

    pub(crate) fn get(&mut self) -> &mut T {
        self.value.as_mut().expect(PRESENT)
    }

    pub(crate) fn take(&mut self) -> T {
        self.value.take().expect(PRESENT)
    }

    /// For a task of the I/O lane.
    pub(crate) fn drop_value(&mut self) {
        drop_quietly(DESTRUCTOR, self.value.take());
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        if self.is_empty() {
            return;
        }
        // The runtime has refused the task that was to drop the value, or has dropped
        // that task before its first poll.
        run_hook("the log", || {
            warn_of_value_without_lane(type_name::<T>());
        });
        run_hook(DESTRUCTOR, || {
            let io = self.io.clone();
            // A thread that ends may have no context any more.
            let can_enter = Handle::try_current()
                .map_or_else(|error| !error.is_thread_local_destroyed(), |_| true);
            let _io = can_enter.then(|| io.enter());
            self.drop_value();
        });
    }
}

fn warn_of_value_without_lane(_value: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: "twolane",
        value = _value,
        "a value of an IoOwned is dropped after the end of its I/O runtime: what its destructor \
         spawns never runs. Drop it, or await IoOwned::take, before the runtime ends"
    );
}

/// Locks the slot. The caller gets its place in the queue at the call, not at the first
/// poll.
pub(crate) fn lock<T: Send + 'static>(
    slot: &Arc<Mutex<Slot<T>>>,
) -> impl Future<Output = OwnedMutexGuard<Slot<T>>> + Send + use<T> {
    let locked = slot.clone().try_lock_owned().or_else(|_| {
        // The first poll enters the queue, also if the task on this thread has used up its
        // budget: hence `unconstrained`.
        let mut lock = Box::pin(coop::unconstrained(slot.clone().lock_owned()));
        match lock.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(locked) => Ok(locked),
            Poll::Pending => Err(lock),
        }
    });
    async move {
        match locked {
            Ok(locked) => locked,
            Err(lock) => lock.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    /// Polls as a task with a used-up budget does, and in another order than that of the
    /// calls.
    #[test]
    fn the_order_of_the_calls_is_that_of_the_queue() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let slot = Slot::new(Vec::new(), runtime.handle().clone());
        let slot = Arc::new(Mutex::new(slot));
        let (first, mut second, mut third) = runtime.block_on(async {
            while pin!(coop::consume_budget()).poll(&mut cx).is_ready() {}
            let calls = (lock(&slot), Box::pin(lock(&slot)), Box::pin(lock(&slot)));
            drop(Box::pin(lock(&slot)));
            calls
        });
        assert!(third.as_mut().poll(&mut cx).is_pending());
        assert!(second.as_mut().poll(&mut cx).is_pending());
        // The first has the value, though no poll came yet.
        drop(first);
        assert!(third.as_mut().poll(&mut cx).is_pending());
        let Poll::Ready(mut locked) = second.as_mut().poll(&mut cx) else {
            panic!("the second call is the next");
        };
        locked.get().push("second");
        assert!(third.as_mut().poll(&mut cx).is_pending());
        drop(locked);
        let Poll::Ready(mut locked) = third.as_mut().poll(&mut cx) else {
            panic!("the third call is the next");
        };
        assert_eq!(locked.take(), ["second"]);
    }
}
