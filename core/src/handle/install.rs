//! [`Handle::install`]: a closure that borrows, from a plain thread.

use super::Handle;
use crate::backend::Backend;
use crate::error::JoinError;
use crate::lane::thread;
use crate::panics;

#[track_caller]
pub(super) fn install<R: Send>(
    handle: &Handle,
    f: impl FnOnce() -> R + Send,
) -> Result<R, JoinError> {
    if handle.level.lane().settings.backend == Backend::Runtime {
        panic!(
            "`install` needs a rayon pool, and this CpuRuntime has `Backend::Runtime`: \
             build it with `Backend::Rayon`, or use `spawn_cpu(..).wait()`"
        );
    }
    let level = handle.level();
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
