//! Carries the submitter's `tracing` context into the job: its span and its dispatcher
//! (the subscriber). So the events of a job appear where the events of its request are.
//!
//! Nothing is captured, and it costs nothing, while no subscriber was ever set, or
//! without the `tracing` feature.

use std::sync::Once;

use stallwatch::Name;

#[cfg(feature = "tracing")]
use tracing::{Dispatch, Span, dispatcher};

pub(crate) struct Origin {
    #[cfg(feature = "tracing")]
    dispatch: Dispatch,
    #[cfg(feature = "tracing")]
    span: Span,
}

impl Origin {
    #[inline]
    pub(crate) fn capture() -> Option<Self> {
        #[cfg(feature = "tracing")]
        if dispatcher::has_been_set() {
            return Some(Self::current());
        }
        None
    }

    #[cfg(feature = "tracing")]
    #[cold]
    fn current() -> Self {
        Self {
            dispatch: dispatcher::get_default(Dispatch::clone),
            span: Span::current(),
        }
    }

    // Apart, so that a step without a span inlines the look at one pointer alone.
    #[cfg(feature = "tracing")]
    #[inline(never)]
    fn call<R>(&self, f: impl FnOnce() -> R) -> R {
        // Guards, not the calls that take a closure: those are compiled for each `f`.
        let _dispatch = dispatcher::set_default(&self.dispatch);
        let _span = self.span.enter();
        f()
    }
}

/// Runs `f` inside the captured context, if there is one.
#[inline]
pub(crate) fn in_scope<R>(origin: Option<&Origin>, f: impl FnOnce() -> R) -> R {
    match origin {
        #[cfg(feature = "tracing")]
        Some(origin) => origin.call(f),
        _ => f(),
    }
}

/// Emits an event of the crate, at one of the levels of `tracing`. Does nothing without
/// the feature.
macro_rules! log {
    ($level:ident, $($event:tt)*) => {
        #[cfg(feature = "tracing")]
        tracing::$level!(target: "twolane", $($event)*)
    };
}

/// A thread of the lane could not set its nice value. Logged once per lane.
pub(crate) fn warn_of_refused_nice(_nice: i32, _error: &str) {
    log!(
        warn,
        nice = _nice,
        error = _error,
        "the CPU lane's threads can't set their nice value: jobs run, but compete more with the \
         I/O lane, and with one another"
    );
}

/// Logs what is found once per process, or lane. The subscriber is user code.
pub(crate) fn warn(_found: &str) {
    crate::panics::run_hook("the log", || {
        log!(warn, "{_found}");
    });
}

/// The depth of a stack tells nothing here.
pub(crate) const POLLING_WORKERS: &str = "the CPU lane's workers poll for jobs each millisecond: the addresses of locals do not follow \
     the stack here (AddressSanitizer, Miri)";

/// Its threads end with the last reference.
pub(crate) const KEPT_POOL: &str = "a rayon pool of `CpuRuntime::rayon_pool` is kept elsewhere, and a shutdown waits until it is \
     dropped: drop what holds it first, or give the shutdown a limit";

/// Detached jobs were closed or dropped before their end.
pub(crate) fn warn_of_lost_jobs(_jobs: usize) {
    log!(
        warn,
        jobs = _jobs,
        "detached jobs were dropped before their end: the lane was shut down, its queue is full, \
         its I/O runtime is gone, or there are no threads. Keep the tasks of jobs that matter"
    );
}

/// A task was dropped before its closure began. Logged once per call site.
pub(crate) fn note_dropped_task(_site: Name) {
    #[cfg(feature = "tracing")]
    {
        use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
        static LOGGED: [AtomicU64; Name::MOST / 64] =
            [const { AtomicU64::new(0) }; Name::MOST / 64];
        let (word, bit) = (_site.index() as usize / 64, 1 << (_site.index() % 64));
        if LOGGED[word].fetch_or(bit, Relaxed) & bit == 0 {
            let text = "a task was dropped before its closure began, so the closure never runs: \
                        await the task, or call `detach`. Logged once for each call site";
            log!(info, site = %_site, "{text}");
        }
    }
}

/// A closure has returned what its type name says is an `async` block, or a closure. Logged once
/// per process.
pub(crate) fn warn_of_unpolled_output(_name: &'static str) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log!(
            warn,
            output = _name,
            "spawn_cpu was given a closure that returns an async block or a closure: it computes \
             nothing on the CPU lane; give the future itself to `spawn`"
        );
    });
}

/// A thread of the I/O runtime has got a worker of the lane's own runtime. Logged once per process.
pub(crate) fn warn_of_block_in_place() {
    static ONCE: Once = Once::new();
    let text = "a job that was polled in_cpu_context called tokio::task::block_in_place outside of it: Tokio \
                gives the worker of the lane's own runtime to a thread of the I/O runtime's blocking pool, and \
                the lane takes it back by way of one more thread. Call it in_cpu_context";
    ONCE.call_once(|| warn(text));
}
