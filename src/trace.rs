//! What the submitter's `tracing` context leaves to the job: its span and its
//! dispatcher (the subscriber), so that a job's events are found where its
//! request's are. Nothing is captured, and nothing is paid, as long as no
//! subscriber was ever set, or without the `tracing` feature.

use std::io;

use crate::priority::Priority;

#[cfg(feature = "tracing")]
mod imp {
    use tracing::{Dispatch, Span, dispatcher};

    pub(crate) struct Origin {
        dispatch: Dispatch,
        span: Span,
    }

    impl Origin {
        pub(crate) fn capture() -> Option<Self> {
            dispatcher::has_been_set().then(|| Self {
                dispatch: dispatcher::get_default(Dispatch::clone),
                span: Span::current(),
            })
        }

        pub(crate) fn in_scope<R>(&self, f: impl FnOnce() -> R) -> R {
            dispatcher::with_default(&self.dispatch, || self.span.in_scope(f))
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod imp {
    pub(crate) enum Origin {}

    impl Origin {
        pub(crate) fn capture() -> Option<Self> {
            None
        }

        pub(crate) fn in_scope<R>(&self, _f: impl FnOnce() -> R) -> R {
            match *self {}
        }
    }
}

pub(crate) use imp::Origin;

/// Runs `f` where `origin` was captured, if it was.
pub(crate) fn in_scope<R>(origin: Option<&Origin>, f: impl FnOnce() -> R) -> R {
    match origin {
        Some(origin) => origin.in_scope(f),
        None => f(),
    }
}

/// An event of ours, at one of tracing's levels; nothing without the feature.
macro_rules! log {
    ($level:ident, $($event:tt)*) => {
        #[cfg(feature = "tracing")]
        tracing::$level!(target: "twolane", $($event)*)
    };
}

/// A thread of the lane could not be given its weight. Told once per lane.
pub(crate) fn warn_of_refused_nice(_nice: i32, _error: &io::Error) {
    log!(
        warn, nice = _nice, error = %_error,
        "the CPU lane's threads can't be given their weight: jobs run, but compete more with the \
         I/O lane, and with one another"
    );
}

/// A priority's threads did not start; its jobs end with an error.
pub(crate) fn error_no_threads(_priority: Priority, _error: &io::Error) {
    log!(error, priority = ?_priority, error = %_error, "no threads to be had for a priority");
}

/// Jobs that were detached, and then dropped before their end.
pub(crate) fn warn_of_lost_jobs(_jobs: usize) {
    log!(
        warn,
        jobs = _jobs,
        "detached jobs were dropped before their end: the lane was shut down, its queue is full, \
         its I/O runtime is gone, or there are no threads. Keep the tasks of jobs that matter"
    );
}
