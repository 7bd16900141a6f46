//! The events of this crate, on the target `giveway`.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Logs what is found once per process. The subscriber is user code, and may panic.
pub(crate) fn warn(_found: &str) {
    let log = || {
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "giveway", "{_found}");
    };
    let _ = catch_unwind(AssertUnwindSafe(log));
}
