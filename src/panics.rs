//! Every policy about panics, in one place.
//!
//! Code that belongs to the user runs on the lane's threads: a closure, a
//! future, a thread hook, and the destructors of what they captured, returned
//! or panicked with. A panic in any of them must reach the awaiting side or
//! the log, and never the thread below it: rayon aborts the process then, and
//! a Tokio worker would be replaced.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// Runs `f`; a panic comes back as its payload.
pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, PanicPayload> {
    // Unwind safety is the caller's promise: whatever `f` touched is either
    // consumed by it or handed on as a panic.
    catch_unwind(AssertUnwindSafe(f)).map_err(PanicPayload::new)
}

/// Drops `value`; a panic in its destructor is logged and ends here.
pub(crate) fn drop_quietly<T>(what: &'static str, value: T) {
    if let Err(payload) = catch(|| drop(value)) {
        report(what, &payload.text());
    }
}

/// Calls a hook of the user's; a panic in it is logged and ends here.
pub(crate) fn run_hook(what: &'static str, hook: impl FnOnce()) {
    call_logged(what, hook);
}

/// The same for what returns something, if it does.
pub(crate) fn call_logged<R>(what: &'static str, f: impl FnOnce() -> R) -> Option<R> {
    catch(f)
        .inspect_err(|payload| report(what, &payload.text()))
        .ok()
}

/// A panic that no task will carry to anyone.
#[cfg(feature = "tracing")]
pub(crate) fn report(what: &'static str, text: &str) {
    // The subscriber is foreign code as well, and whoever reports goes on.
    let told = catch_unwind(|| {
        tracing::error!(target: "twolane", panic = text, "{what} panicked");
    });
    // What it panics with is nobody's, and its destructor may panic again.
    told.unwrap_or_else(mem::forget);
}
/// The panic hook has printed it already; there is no log to repeat it in.
#[cfg(not(feature = "tracing"))]
pub(crate) fn report(_what: &'static str, _text: &str) {}

/// The same, for a payload that came by another way than [`catch`].
pub(crate) fn report_payload(what: &'static str, payload: Box<dyn Any + Send>) {
    report(what, &PanicPayload::new(payload).text());
}

/// What a panic carried. Its own destructor may panic as well: that is caught
/// too, so that dropping an error never brings anything down.
pub(crate) struct PanicPayload {
    // A `Mutex` only because the payload is not `Sync` and an error should be.
    payload: Mutex<Option<Box<dyn Any + Send>>>,
}

impl PanicPayload {
    fn new(payload: Box<dyn Any + Send>) -> Self {
        Self {
            payload: Mutex::new(Some(payload)),
        }
    }

    /// The message, where the payload is text (`panic!` makes such payloads).
    pub(crate) fn text(&self) -> String {
        let slot = match self.payload.lock() {
            Ok(slot) => slot,
            Err(poisoned) => poisoned.into_inner(),
        };
        match slot.as_ref() {
            Some(payload) => {
                if let Some(text) = payload.downcast_ref::<&'static str>() {
                    (*text).to_owned()
                } else if let Some(text) = payload.downcast_ref::<String>() {
                    text.clone()
                } else {
                    "a payload that is not text".to_owned()
                }
            }
            None => "a payload that was taken".to_owned(),
        }
    }

    pub(crate) fn into_inner(self) -> Box<dyn Any + Send> {
        self.take()
            .expect("only `into_inner`, which consumes, and `drop` take the payload")
    }

    fn take(&self) -> Option<Box<dyn Any + Send>> {
        match self.payload.lock() {
            Ok(mut slot) => slot.take(),
            Err(poisoned) => poisoned.into_inner().take(),
        }
    }
}

impl Drop for PanicPayload {
    fn drop(&mut self) {
        let payload = self.take();
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            report(
                "the destructor of a panic's payload",
                "see the panic hook's output",
            );
            // A payload whose destructor panics with a payload whose
            // destructor panics: leaking it ends the regress.
            mem::forget(second);
        }
    }
}
