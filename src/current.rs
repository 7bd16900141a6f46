//! The free functions: what [`Handle`] does, on the current one.

use std::future::Future;

use crate::error::NoCurrentHandle;
use crate::handle::Handle;
use crate::io::in_context::InIoContext;
use crate::task::Task;

/// As [`Handle::spawn_cpu`], on the current handle.
///
/// There is no free `spawn`, so that a changed import can't silently move a
/// future to another lane.
///
/// # Panics
/// If there is no current handle; see [`try_spawn_cpu`].
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let nested = cpu.spawn(async { twolane::spawn_cpu(|| 6 * 7).await.unwrap() });
/// assert_eq!(nested.await.unwrap(), 42);
/// # }
/// ```
#[track_caller]
pub fn spawn_cpu<F, T>(f: F) -> Task<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Handle::current().spawn_cpu(f)
}

/// As [`spawn_cpu`].
///
/// # Errors
/// If there is no current handle. The closure is dropped.
///
/// ```
/// assert!(twolane::try_spawn_cpu(|| 1).is_err());
/// ```
pub fn try_spawn_cpu<F, T>(f: F) -> Result<Task<T>, NoCurrentHandle>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Ok(Handle::try_current()?.spawn_cpu(f))
}

/// As [`Handle::spawn_io`], on the current handle.
///
/// # Panics
/// If there is no current handle; see [`try_spawn_io`].
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let closure = cpu.spawn_cpu(|| twolane::spawn_io(async { 42 }).wait().unwrap());
/// assert_eq!(closure.await.unwrap(), 42);
/// # }
/// ```
#[track_caller]
pub fn spawn_io<F>(future: F) -> Task<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    Handle::current().spawn_io(future)
}

/// As [`spawn_io`].
///
/// # Errors
/// If there is no current handle. The future is dropped.
///
/// ```
/// assert!(twolane::try_spawn_io(async {}).is_err());
/// ```
pub fn try_spawn_io<F>(future: F) -> Result<Task<F::Output>, NoCurrentHandle>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    Ok(Handle::try_current()?.spawn_io(future))
}

/// As [`Handle::in_io_context`], on the current handle.
///
/// # Panics
/// If there is no current handle.
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let slept = cpu.spawn(async {
///     twolane::in_io_context(|| tokio::time::sleep(std::time::Duration::from_millis(1))).await
/// });
/// slept.await.unwrap();
/// # }
/// ```
#[track_caller]
pub fn in_io_context<M, F>(make: M) -> InIoContext<F>
where
    M: FnOnce() -> F,
    F: Future,
{
    Handle::current().in_io_context(make)
}
