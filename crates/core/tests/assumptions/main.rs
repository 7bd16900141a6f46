//! Does what the lanes rely on, and Tokio, rayon, the standard library and Linux do not
//! promise, still hold?
//!
//! A file for each such assumption. `.ci/versions` runs them with the oldest and the newest
//! Tokio and rayon-core that the manifests admit, so they use few other crates. Where one
//! fails with a new release, its file says which code to change.

mod kept_budget;
mod paused_clock;
#[cfg(target_os = "linux")]
mod slices;
mod stack_depth;
mod thread_locals;

/// As the lanes measure it.
#[path = "../../src/pool/stack.rs"]
mod stack;
#[path = "../support/mod.rs"]
mod support;
