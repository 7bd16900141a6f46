//! The panic policy, in one place.
//!
//! User code runs on the lane's threads: closures, futures, thread hooks, and the
//! destructors of what they captured, returned or panicked with. A panic in any of them
//! must reach the awaiter or the log. It must never unwind into the thread's own loop:
//! rayon would abort the process, and Tokio would replace the worker.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// Runs `f` and returns a panic as its payload.
pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, PanicPayload> {
    // The caller promises unwind safety: what `f` touches is either consumed by it or
    // passed on as a panic.
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => Ok(result),
        Err(payload) => Err(PanicPayload::new(payload)),
    }
}

/// Drops `value`; logs a panic in its destructor.
pub fn drop_quietly<T>(what: &'static str, value: T) {
    run_hook(what, || drop(value));
}

/// Calls a hook of the user; logs a panic in it.
pub fn run_hook(what: &'static str, hook: impl FnOnce()) {
    let mut hook = Some(hook);
    call_hook(what, &mut || {
        if let Some(hook) = hook.take() {
            hook();
        }
    });
}

// Not generic: to catch a panic takes more code than most hooks, and each kind of job has six of them.
fn call_hook(what: &'static str, hook: &mut dyn FnMut()) {
    call_logged(what, hook);
}

/// Calls `f` and returns its result; logs a panic and returns `None`.
pub(crate) fn call_logged<R>(what: &'static str, f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => Some(result),
        Err(payload) => {
            log_panic(what, payload);
            None
        }
    }
}

// Apart, and cold: inlined, it takes registers from what `f` does.
#[cold]
fn log_panic(what: &'static str, payload: Box<dyn Any + Send>) {
    report(what, &PanicPayload::new(payload).text());
}

/// Calls `f`. If it panics, drops what `take` finds in `place` while the panic unwinds, as
/// Tokio does: a destructor may ask [`panicking`](std::thread::panicking).
pub(crate) fn or_drop<P, T, R>(
    what: &'static str,
    place: &mut P,
    take: fn(&mut P) -> T,
    f: impl FnOnce(&mut P) -> R,
) -> R {
    struct OnUnwind<'a, P, T>(&'static str, &'a mut P, fn(&mut P) -> T);
    impl<P, T> Drop for OnUnwind<'_, P, T> {
        fn drop(&mut self) {
            // A second panic that leaves a destructor would abort the process.
            run_hook(self.0, || drop((self.2)(self.1)));
        }
    }
    let guard = OnUnwind(what, place, take);
    let result = f(&mut *guard.1);
    mem::forget(guard);
    result
}

/// Logs a panic that no task carries to an awaiter. Does nothing without the feature `tracing`:
/// there is no log then, and the panic hook has already printed the panic.
#[cold]
pub(crate) fn report(_what: &'static str, _text: &str) {
    // The subscriber is user code and may panic too; the caller must go on. No task takes this
    // second payload, and its destructor may panic again: leak it.
    #[cfg(feature = "tracing")]
    catch_unwind(|| {
        tracing::error!(target: "twolane", panic = _text, "{_what} panicked");
    })
    .unwrap_or_else(mem::forget);
}

/// The payload of a panic. Its destructor may panic as well. `drop` catches that panic
/// too, so that dropping an error never unwinds.
#[derive(Debug)]
pub(crate) struct PanicPayload {
    // A `Mutex` makes the error `Sync`; the payload is only `Send`.
    payload: Mutex<Option<Box<dyn Any + Send>>>,
}

impl PanicPayload {
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Self {
        let payload = Mutex::new(Some(payload));
        Self { payload }
    }

    /// The message, if the payload is text (`panic!` makes such payloads).
    pub(crate) fn text(&self) -> String {
        let slot = self.payload.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(payload) = slot.as_ref() else {
            return "a payload that was taken".to_owned();
        };
        let text = payload.downcast_ref::<&'static str>().copied();
        text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("a payload that is not text")
            .to_owned()
    }

    pub(crate) fn into_inner(self) -> Box<dyn Any + Send> {
        self.take()
            .expect("only `into_inner`, which consumes, and `drop` take the payload")
    }

    /// Takes the payload, if no other caller has it.
    pub(crate) fn take(&self) -> Option<Box<dyn Any + Send>> {
        let slot = self.payload.lock();
        slot.unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for PanicPayload {
    fn drop(&mut self) {
        let payload = self.take();
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            let what = "the destructor of a panic's payload";
            report(what, "see the panic hook's output");
            // The destructor of `second` may panic with a further payload, and so on:
            // leak it.
            mem::forget(second);
        }
    }
}
