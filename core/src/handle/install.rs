//! [`Handle::install`]: a closure that borrows, from a plain thread.

use super::Handle;
use crate::backend::Backend;
use crate::error::JoinError;
use crate::lane::thread;
use crate::panics;

impl Handle {
    /// Runs a closure in the rayon pool, and blocks until it returns.
    ///
    /// The closure may borrow. Use it on plain threads only, never in async code: the
    /// caller blocks. The pool is that of this handle's [`Priority`](crate::Priority).
    /// Inside a job of the same priority the closure runs on the calling thread. Otherwise
    /// it goes into rayon's own queue, not into the lane's. It is no job: it has no task
    /// and cannot be cancelled.
    ///
    /// # Errors
    ///
    /// [`JoinError::is_panic`] if `f` panicked;
    /// [`JoinErrorKind::Shutdown`](crate::JoinErrorKind::Shutdown) after a
    /// shutdown; [`JoinErrorKind::IoRuntimeGone`](crate::JoinErrorKind::IoRuntimeGone).
    ///
    /// # Panics
    ///
    /// If the backend is [`Backend::Runtime`], which has no rayon pool. Also in an
    /// `on_thread_start` hook of the same lane.
    ///
    /// # Examples
    ///
    /// ```
    /// use rayon::prelude::*;
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let numbers = vec![1, 2, 3];
    /// let sum: i32 = cpu.handle().install(|| numbers.par_iter().sum()).unwrap();
    /// assert_eq!(sum, 6);
    /// ```
    #[track_caller]
    pub fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> Result<R, JoinError> {
        if self.backend() == Backend::Runtime {
            panic!(
                "`install` needs a rayon pool, and this CpuRuntime has `Backend::Runtime`: \
                 build it with `Backend::Rayon`, or use `spawn_cpu(..).wait()`"
            );
        }
        let level = self.level();
        if let Some(cause) = level.lane().close_reason() {
            return Err(cause.into());
        }
        if level.workers().is_none() {
            panic!(
                "`install` in an `on_thread_start` hook: it may wait for the very thread that \
                 runs the hook. Spawn a job there, and don't wait for it"
            );
        }
        let level = &level.at_caller();
        let queued = level.installs();
        let (mut f, mut result) = (Some(f), None);
        let mut run = || {
            level.timed(queued, || result = f.take().map(panics::catch));
        };
        let is_done = if thread::helps(level) {
            // This thread is one of another pool, but the job that it runs is of this level.
            run();
            true
        } else {
            let workers = level.workers();
            workers.is_some_and(|workers| workers.install(&mut run))
        };
        if is_done {
            let result = result.expect("an installed closure runs once");
            result.map_err(JoinError::of_unwinding)
        } else {
            Err(level.lane().reason_of_close().into())
        }
    }
}
