//! Panics of the user's code that this crate calls on the lanes' threads: each becomes an error
//! of its stream, or goes to the log.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use twolane_core::JoinError;

/// Calls `f`, and makes its panic an error.
pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, JoinError> {
    // Unwind safety: what `f` touches is consumed by it, or passed on as a panic.
    catch_unwind(AssertUnwindSafe(f)).map_err(JoinError::from_panic)
}

/// Calls `hook`, and logs its panic.
pub(crate) fn run_hook(what: &'static str, hook: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(hook)) {
        report_payload(what, payload);
    }
}

#[cold]
fn report_payload(what: &'static str, payload: Box<dyn Any + Send>) {
    report(what, &*payload);
    // Its destructor may panic too: the error sees to that.
    drop(JoinError::from_panic(payload));
}

/// Drops `value`, and logs a panic of its destructor.
pub(crate) fn drop_quietly<T>(what: &'static str, value: T) {
    run_hook(what, || drop(value));
}

/// Drops each item by itself, so that one whose destructor panics does not cost the others.
pub(crate) fn drop_each<T>(what: &'static str, items: impl IntoIterator<Item = T>) {
    if mem::needs_drop::<T>() {
        items.into_iter().for_each(|item| drop_quietly(what, item));
    }
}

/// Logs the panic of a stage that no reader learns of.
pub(crate) fn report_unread(error: JoinError) {
    if let Ok(payload) = error.try_into_panic() {
        report_payload("a job without an awaiter", payload);
    }
}

/// Logs the panic of what has no other way to report it.
fn report(_what: &'static str, _payload: &(dyn Any + Send)) {
    #[cfg(feature = "tracing")]
    {
        let text = _payload.downcast_ref::<&'static str>().copied();
        let text = text.or_else(|| _payload.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("a payload that is not text");
        // The subscriber is user code and may panic too. The destructor of that payload may
        // panic again: leak it.
        let told = catch_unwind(|| {
            tracing::error!(target: "twolane", panic = text, "{_what} panicked");
        });
        told.unwrap_or_else(mem::forget);
    }
}
