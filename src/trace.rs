//! What the submitter's `tracing` context leaves to the job: its span and its
//! dispatcher (the subscriber), so that a job's events are found where its
//! request's are. Nothing is captured, and nothing is paid, as long as no
//! subscriber was ever set, or without the `tracing` feature.

#[cfg(feature = "tracing")]
mod imp {
    use tracing::{Dispatch, Span, dispatcher};

    /// Boxed: most jobs of most programs carry nothing, and a queued job
    /// should be small.
    pub(crate) struct Carried(Option<Box<(Dispatch, Span)>>);

    impl Carried {
        pub(crate) fn capture() -> Self {
            if !dispatcher::has_been_set() {
                return Self(None);
            }
            Self(Some(Box::new((
                dispatcher::get_default(Dispatch::clone),
                Span::current(),
            ))))
        }

        pub(crate) fn in_scope<R>(&self, f: impl FnOnce() -> R) -> R {
            match self.0.as_deref() {
                None => f(),
                Some((dispatch, span)) => dispatcher::with_default(dispatch, || span.in_scope(f)),
            }
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod imp {
    pub(crate) struct Carried;

    impl Carried {
        pub(crate) fn capture() -> Self {
            Self
        }

        pub(crate) fn in_scope<R>(&self, f: impl FnOnce() -> R) -> R {
            f()
        }
    }
}

pub(crate) use imp::Carried;
