//! [`Handle`] and [`IoHandle`] as what others take to spawn futures.
//!
//! These interfaces return no task, so what they spawn is detached.

use futures_task::{FutureObj, Spawn, SpawnError};

use super::{Handle, IoHandle};

/// The future computes on the CPU lane. It is refused where [`Handle::try_spawn`] refuses it: the
/// error is the only one of this interface, also for a full queue.
impl Spawn for Handle {
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        let task = self.try_spawn(future).map_err(|_| SpawnError::shutdown())?;
        task.detach();
        Ok(())
    }

    fn status(&self) -> Result<(), SpawnError> {
        self.close_error()
            .map_or(Ok(()), |_| Err(SpawnError::shutdown()))
    }
}

/// The future runs on the I/O lane.
impl Spawn for IoHandle {
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.status()?;
        self.spawn(future).detach();
        Ok(())
    }

    fn status(&self) -> Result<(), SpawnError> {
        match self.is_gone() {
            true => Err(SpawnError::shutdown()),
            false => Ok(()),
        }
    }
}

/// The future computes on the CPU lane. This interface has no error: if the lane does not take the
/// future, it drops it, and logs a warning. To a handle [`without_limit`](Handle::without_limit) no
/// queue is full.
#[cfg(feature = "hyper")]
#[cfg_attr(docsrs, doc(cfg(feature = "hyper")))]
impl<F> hyper::rt::Executor<F> for Handle
where
    F: std::future::Future<Output: Send> + Send + 'static,
{
    fn execute(&self, future: F) {
        self.spawn(future).detach();
    }
}

/// The future runs on the I/O lane, for connections.
#[cfg(feature = "hyper")]
#[cfg_attr(docsrs, doc(cfg(feature = "hyper")))]
impl<F> hyper::rt::Executor<F> for IoHandle
where
    F: std::future::Future<Output: Send> + Send + 'static,
{
    fn execute(&self, future: F) {
        self.spawn(future).detach();
    }
}
