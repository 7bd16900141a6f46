//! What of a stream no reader takes. A panic in it goes to the log.

use std::{mem, panic};

use twolane_core::JoinError;
use twolane_core::adapters::{drop_quietly, run_hook};

/// Drops each item by itself, so that one whose destructor panics does not cost the others.
pub(super) fn drop_each<T>(what: &'static str, items: impl IntoIterator<Item = T>) {
    if mem::needs_drop::<T>() {
        items.into_iter().for_each(|item| drop_quietly(what, item));
    }
}

/// Logs the panic of a stage.
pub(super) fn report_unread(error: JoinError) {
    if let Ok(payload) = error.try_into_panic() {
        // It is caught, and logged as one of a hook.
        run_hook("a job without an awaiter", || panic::resume_unwind(payload));
    }
}
