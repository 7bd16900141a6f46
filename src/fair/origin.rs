//! [`carry`]: the submitter's span. Whoever gives out turns hands the job to the lane in it.

#[cfg(not(feature = "tracing"))]
pub(super) use std::convert::identity as carry;

#[cfg(feature = "tracing")]
use tracing::{Dispatch, Span, dispatcher, error_span};

/// Carries the caller's span and subscriber into `f`.
#[cfg(feature = "tracing")]
pub(super) fn carry<A, R>(f: impl FnOnce(A) -> R) -> impl FnOnce(A) -> R {
    let current = || (dispatcher::get_default(Dispatch::clone), Span::current());
    let context = dispatcher::has_been_set().then(current);
    move |argument| match context {
        None => f(argument),
        Some((dispatch, span)) => dispatcher::with_default(&dispatch, || {
            // Without a span of its own, the job would take that of this thread's job.
            let takes_other = span.is_none() && !Span::current().is_none();
            let own = || error_span!(target: "twolane", parent: None, "fair");
            let span = if takes_other { own() } else { span };
            span.in_scope(|| f(argument))
        }),
    }
}
