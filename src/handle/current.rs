//! The current [`Handle`], and the free functions: what a handle does, on that
//! one.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

use super::Handle;
use crate::bridge::in_context::InIoContext;
use crate::lane::thread;
use crate::task::Task;

impl Handle {
    /// The current handle: the one entered on this thread
    /// ([`enter`](Self::enter)), else that of the job or thread this code runs
    /// in, else the process's default
    /// ([`set_process_default`](Self::set_process_default)).
    ///
    /// A job has one, at its own [`Priority`](crate::Priority), and so has what it gives to
    /// `spawn_io` or to `rayon::join`. What it starts by `tokio::spawn`,
    /// `spawn_blocking` or a thread of its own has none (with
    /// [`Backend::Runtime`](crate::Backend::Runtime) the first two have), and neither has a request
    /// handler on the I/O lane: keep a handle in the application's state, or
    /// set the process's default.
    ///
    /// # Panics
    /// If there is none; see [`try_current`](Self::try_current).
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// cpu.spawn_cpu(|| twolane::Handle::current().threads()).wait().unwrap();
    /// ```
    #[track_caller]
    pub fn current() -> Self {
        match Self::try_current() {
            Ok(handle) => handle,
            Err(none) => panic!("{none}"),
        }
    }

    /// As [`current`](Self::current).
    ///
    /// # Errors
    /// If there is none.
    ///
    /// ```
    /// assert!(twolane::Handle::try_current().is_err());
    /// ```
    pub fn try_current() -> Result<Self, NoCurrentHandle> {
        thread::current().map(Self::new).ok_or(NoCurrentHandle)
    }

    /// Makes this the current handle of this thread until the guard is
    /// dropped. Guards nest; don't hold one across an `.await`.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let handle = cpu.handle();
    /// let _entered = handle.enter();
    /// assert_eq!(twolane::spawn_cpu(|| 1).wait().unwrap(), 1);
    /// ```
    pub fn enter(&self) -> EnterGuard<'_> {
        let depth = thread::enter(self.level());
        EnterGuard {
            depth: depth.unwrap_or_default(),
            _thread_bound: PhantomData,
        }
    }

    /// Makes `handle` the current one wherever there is no other; returns the
    /// one before.
    ///
    /// For programs with one `CpuRuntime`. In tests prefer handles: a default
    /// that belongs to the first `#[tokio::test]` ends with that test's
    /// runtime, and the next one is told [`JoinError::is_io_runtime_gone`](crate::JoinError::is_io_runtime_gone).
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// twolane::Handle::set_process_default(Some(cpu.handle()));
    /// assert_eq!(twolane::spawn_cpu(|| 1).wait().unwrap(), 1);
    /// ```
    pub fn set_process_default(handle: Option<Self>) -> Option<Self> {
        let level = handle.map(|handle| handle.level);
        thread::set_process_default(level).map(Self::new)
    }
}

/// As [`Handle::spawn_cpu`], on the current handle.
///
/// There is no free `spawn`, so that a changed import can't silently move a
/// future to another lane.
///
/// # Panics
/// If there is no current handle; see [`Handle::try_current`].
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

/// As [`Handle::spawn_io`], on the current handle.
///
/// # Panics
/// If there is no current handle; see [`Handle::try_current`].
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

/// This thread has no current [`Handle`](crate::Handle).
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
             (Handle::set_process_default); call the method on a Handle instead",
        )
    }
}

impl Error for NoCurrentHandle {}

/// While it lives, the handle it came from is the current one on this thread.
///
/// Returned by [`Handle::enter`]. Guards are left in the reverse order of their
/// making, as scopes do by themselves.
#[must_use = "the handle is current only as long as the guard lives"]
pub struct EnterGuard<'a> {
    depth: usize,
    // Bound to the thread: what it undoes is the thread's.
    _thread_bound: PhantomData<(&'a Handle, *mut ())>,
}

impl Drop for EnterGuard<'_> {
    fn drop(&mut self) {
        if !thread::leave(self.depth) && !std::thread::panicking() {
            panic!("`EnterGuard`s must be dropped in the reverse order of `Handle::enter`");
        }
    }
}

debug_by_name!(EnterGuard<'a>);
