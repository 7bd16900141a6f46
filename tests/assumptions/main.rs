//! Does what the streams and the I/O side rely on, and Tokio does not promise, still hold? (What the
//! lanes rely on: `tests/assumptions` of `twolane-core`.)
//!
//! A file for each such assumption. `.ci/versions` runs them with the oldest and the newest Tokio
//! that the manifests admit, so they use few other crates. Where one fails with a new release, its
//! file says which code to change.

mod closing_runtime;
mod lock_owned;
mod yield_polled_once;

#[path = "../../crates/core/tests/support/mod.rs"]
mod support;
