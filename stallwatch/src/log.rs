//! What the watch logs, as events of `tracing`. Nothing without the feature.

use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[cfg(feature = "tracing")]
use tracing::{Dispatch, dispatcher};

#[cfg(feature = "tracing")]
const TARGET: &str = "stallwatch";

/// The subscriber of the thread that starts the watch. If none was ever set by then: that of the
/// process, once it has one.
pub(crate) struct Subscriber {
    #[cfg(feature = "tracing")]
    dispatch: Option<Dispatch>,
}

impl Subscriber {
    pub(crate) fn current() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            dispatch: dispatcher::has_been_set().then(|| dispatcher::get_default(Dispatch::clone)),
        }
    }

    pub(crate) fn in_scope<R>(&self, f: impl FnOnce() -> R) -> R {
        match self {
            #[cfg(feature = "tracing")]
            Self {
                dispatch: Some(dispatch),
            } => dispatcher::with_default(dispatch, f),
            _ => f(),
        }
    }
}

pub(crate) fn warn_of_stall(_stall: &dyn fmt::Display, _suppressed: u64) {
    #[cfg(feature = "tracing")]
    {
        let suppressed = Some(_suppressed).filter(|suppressed| *suppressed > 0);
        tracing::warn!(target: TARGET, suppressed, "{_stall}");
    }
}

/// Calls `f`, and logs a panic in it.
pub(crate) fn call<R>(_what: &'static str, f: impl FnOnce() -> R) -> Option<R> {
    let payload = match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => return Some(result),
        Err(payload) => payload,
    };
    #[cfg(feature = "tracing")]
    {
        let text = payload.downcast_ref::<&'static str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("a payload that is not text");
        let logged = catch_unwind(|| {
            tracing::error!(target: TARGET, panic = text, "{_what} panicked");
        });
        // The payload's destructor may panic, too, here and below: leak it.
        logged.unwrap_or_else(mem::forget);
    }
    mem::forget(payload);
    None
}
