//! The current [`Handle`], and the free functions that use it.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

use super::Handle;
use crate::lane::thread;
use crate::task::Task;

impl Handle {
    /// Returns the current handle.
    ///
    /// That is the handle entered on this thread ([`enter`](Self::enter)). Without
    /// one it is the handle of the job or lane thread that runs this code, and without
    /// that the process's default ([`set_process_default`](Self::set_process_default)).
    ///
    /// A job has a current handle, at the job's own [`Priority`](crate::Priority). So
    /// has code that the job passes to `spawn_io` or to `rayon::join`. Code that the
    /// job starts with `tokio::spawn`, `spawn_blocking` or on a thread of its own has
    /// none; inside [`in_cpu_context`](crate::in_cpu_context) the first two have one. A
    /// request handler on the I/O lane has none either. There, keep a handle in the
    /// application's state, or set the process's default.
    ///
    /// # Panics
    ///
    /// If there is no current handle; see [`try_current`](Self::try_current).
    ///
    /// # Examples
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// cpu.spawn_cpu(|| twolane::Handle::current().worker_threads()).wait().unwrap();
    /// ```
    #[track_caller]
    pub fn current() -> Self {
        match Self::try_current() {
            Ok(handle) => handle,
            Err(none) => panic!("{none}"),
        }
    }

    /// Returns the current handle, as [`current`](Self::current), or an error.
    ///
    /// # Errors
    ///
    /// [`NoCurrentHandle`] if there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(twolane::Handle::try_current().is_err());
    /// ```
    pub fn try_current() -> Result<Self, NoCurrentHandle> {
        thread::current().map(Self::new).ok_or(NoCurrentHandle)
    }

    /// Makes this the current handle of this thread until the guard is dropped.
    ///
    /// Guards nest: drop them in the reverse order of `enter`, as scopes do. Don't hold one
    /// across an `.await`.
    ///
    /// # Examples
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

    /// Sets the handle that is current where there is no other; returns the previous one.
    ///
    /// For programs with one `CpuRuntime`. In tests prefer handles: a default set in
    /// one `#[tokio::test]` stops working when that test's runtime ends. A later test
    /// that uses it gets
    /// [`JoinErrorKind::IoRuntimeGone`](crate::JoinErrorKind::IoRuntimeGone).
    ///
    /// # Examples
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
/// Dropping guards panics if the order is not the reverse of their creation.
#[must_use = "the handle is current only as long as the guard lives"]
pub struct EnterGuard<'a> {
    depth: usize,
    // Not `Send`: the drop changes the state of the thread that called `enter`.
    _thread_bound: PhantomData<(&'a Handle, *mut ())>,
}

impl Drop for EnterGuard<'_> {
    fn drop(&mut self) {
        if !thread::is_innermost(self.depth) && !std::thread::panicking() {
            panic!("`EnterGuard`s must be dropped in the reverse order of `Handle::enter`");
        }
        thread::leave(self.depth);
    }
}

debug_by_name!(EnterGuard<'a>);
