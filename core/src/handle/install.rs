//! [`Handle::install`]: a closure that borrows, from a plain thread.

use super::Handle;
use crate::backend::Backend;
use crate::error::JoinError;
use crate::panics;

#[track_caller]
pub(super) fn install<R: Send>(
    handle: &Handle,
    f: impl FnOnce() -> R + Send,
) -> Result<R, JoinError> {
    if handle.level.lane.settings.backend == Backend::Runtime {
        panic!(
            "`install` needs a rayon pool, and this CpuRuntime has `Backend::Runtime`: \
             build it with `Backend::Rayon`, or use `spawn_cpu(..).wait()`"
        );
    }
    let level = &handle.level;
    if let Some(cause) = level.lane.close_reason() {
        return Err(cause.into());
    }
    let Some(workers) = level.workers() else {
        panic!(
            "`install` in an `on_thread_start` hook: it may wait for the very thread that \
             runs the hook. Spawn a job there, and don't wait for it"
        );
    };
    let level = &level.at_caller();
    let (mut f, mut result) = (Some(f), None);
    let mut run = level.timed(|| result = f.take().map(panics::catch));
    workers.install(&mut run);
    drop(run);
    match result {
        Some(result) => result.map_err(JoinError::of_unwinding),
        // The pool is shut down.
        None => Err(level.lane.reason_of_close().into()),
    }
}
