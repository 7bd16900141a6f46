//! What the submitter's `tracing` context leaves to the job: its span and its
//! dispatcher (the subscriber), so that a job's events are found where its
//! request's are. Nothing is captured, and nothing is paid, as long as no
//! subscriber was ever set, or without the `tracing` feature.

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

/// A thread of the lane could not be given its weight. Told once per lane.
#[cfg(feature = "tracing")]
pub(crate) fn warn_of_refused_nice(nice: i32, error: &std::io::Error) {
    tracing::warn!(
        target: "twolane",
        nice,
        %error,
        "the CPU lane's threads can't be given their weight: jobs run, but compete more with the \
         I/O lane, and with one another"
    );
}
#[cfg(not(feature = "tracing"))]
pub(crate) fn warn_of_refused_nice(_nice: i32, _error: &std::io::Error) {}

/// A priority's threads did not start; its jobs end with an error.
#[cfg(feature = "tracing")]
pub(crate) fn error_no_threads(priority: crate::Priority, error: &std::io::Error) {
    tracing::error!(target: "twolane", ?priority, %error, "no threads to be had for a priority");
}
#[cfg(not(feature = "tracing"))]
pub(crate) fn error_no_threads(_priority: crate::Priority, _error: &std::io::Error) {}

/// Jobs that were detached, and then dropped before their end.
#[cfg(feature = "tracing")]
pub(crate) fn warn_of_lost_jobs(jobs: usize) {
    tracing::warn!(
        target: "twolane",
        jobs,
        "detached jobs were dropped before their end: the lane was shut down, its queue is full, \
         its I/O runtime is gone, or there are no threads. Keep the tasks of jobs that matter"
    );
}
#[cfg(not(feature = "tracing"))]
pub(crate) fn warn_of_lost_jobs(_jobs: usize) {}

/// No slice ends until there is a ticker.
#[cfg(feature = "tracing")]
pub(crate) fn warn_no_ticker(error: &std::io::Error) {
    tracing::warn!(
        target: "twolane",
        %error,
        "no thread to be had for yield_if_due to count time by: nothing gives way, until there is"
    );
}
#[cfg(not(feature = "tracing"))]
pub(crate) fn warn_no_ticker(_error: &std::io::Error) {}
