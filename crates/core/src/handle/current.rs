//! What goes with the current [`Handle`]: its guard, its error, the free functions that use it.

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;

use super::Handle;
use crate::lane::thread;
use crate::task::Task;

/// Runs a closure on the CPU lane of the current handle; see [`Handle::spawn_cpu`].
///
/// There is no free `spawn`. Otherwise a changed import could silently move a
/// future to another lane.
///
/// # Panics
///
/// If there is no current handle; see [`Handle::try_current`].
///
/// # Examples
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

/// Runs a future on the I/O lane of the current handle; see [`Handle::spawn_io`].
///
/// # Panics
///
/// If there is no current handle; see [`Handle::try_current`].
///
/// # Examples
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

/// The error of a thread that has no current [`Handle`](crate::Handle).
///
/// A library's own tests have none, and there [`Handle::current`] and the free functions panic:
/// build a [`CpuRuntime`](crate::CpuRuntime) in the test, and run the code in a job or
/// [enter](Handle::enter) the handle. Code that has to work without a lane asks
/// [`Handle::try_current`].
///
/// # Examples
///
/// ```
/// let err = twolane::Handle::try_current().unwrap_err();
/// assert!(err.to_string().contains("Handle::enter"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoCurrentHandle;

impl fmt::Display for NoCurrentHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no current twolane handle on this thread: it runs no job of a CpuRuntime, \
             no handle was entered (Handle::enter) and the process has no default \
             (Handle::set_process_default); call the method on a Handle instead \
             (for reqwest: send_io().on(&handle))",
        )
    }
}

impl Error for NoCurrentHandle {}

/// Keeps a handle current on this thread until it is dropped.
///
/// Returned by [`Handle::enter`].
///
/// # Panics
///
/// Dropping guards panics if the order is not the reverse of their creation. The handle of the
/// guard is left all the same.
#[must_use = "the handle is current only as long as the guard lives"]
pub struct EnterGuard<'a> {
    pub(super) number: usize,
    // Not `Send`: the drop changes the state of the thread that called `enter`.
    pub(super) _thread_bound: PhantomData<(&'a Handle, *mut ())>,
}

impl Drop for EnterGuard<'_> {
    fn drop(&mut self) {
        let left = thread::leave(self.number);
        if left.is_some_and(|(_, is_innermost)| !is_innermost) && !std::thread::panicking() {
            panic!("`EnterGuard`s must be dropped in the reverse order of `Handle::enter`");
        }
    }
}

debug_by_name!(EnterGuard<'a>);
