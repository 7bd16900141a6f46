//! [`Handle`] and [`IoHandle`] as what others take to spawn futures.
//!
//! These interfaces return no task, so what they spawn is detached: nothing awaits it. On `Handle`
//! a shutdown that drops it logs a warning (feature `tracing`), and the handle's deadline and limit
//! hold for it as for each job.

use futures_task::{FutureObj, Spawn, SpawnError};

use super::{Handle, IoHandle};

/// The future computes on the CPU lane, as a detached job. It is refused where
/// [`Handle::try_reserve`] fails: the error is the only one of this interface, also for a full
/// queue. With a deadline that has passed the future is dropped, and the lane logs it.
/// [`call_sites`](Handle::call_sites) counts all of them as one call site, unless the handle has a
/// [name](Handle::with_name).
impl Spawn for Handle {
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        let permit = self.try_reserve().map_err(|_| SpawnError::shutdown())?;
        permit.spawn(future).detach();
        Ok(())
    }

    fn status(&self) -> Result<(), SpawnError> {
        let is_open = self.submitter.close_reason().is_none();
        is_open.then_some(()).ok_or_else(SpawnError::shutdown)
    }
}

/// The future runs on the I/O lane. It is refused if the I/O runtime has been shut down.
impl Spawn for IoHandle {
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.status().map(|()| self.spawn(future).detach())
    }

    fn status(&self) -> Result<(), SpawnError> {
        let is_there = !self.is_gone();
        is_there.then_some(()).ok_or_else(SpawnError::shutdown)
    }
}

/// The future computes on the CPU lane, as a detached job. This interface has no error: if the lane
/// does not take the future, it drops it, and logs a warning. Use a handle
/// [`without_limit`](Handle::without_limit) and without a deadline: then only a closed lane
/// refuses. A [name](Handle::with_name) tells such jobs apart in
/// [`call_sites`](Handle::call_sites).
#[cfg(feature = "hyper")]
#[cfg_attr(docsrs, doc(cfg(feature = "hyper")))]
impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for Handle {
    fn execute(&self, future: F) {
        self.spawn(future).detach();
    }
}

/// The future runs on the I/O lane, for connections. If the I/O runtime has been shut down, it is
/// dropped.
#[cfg(feature = "hyper")]
#[cfg_attr(docsrs, doc(cfg(feature = "hyper")))]
impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for IoHandle {
    fn execute(&self, future: F) {
        self.spawn(future).detach();
    }
}
