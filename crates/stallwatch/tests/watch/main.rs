//! Does the watch name what keeps a thread of the runtime, and nothing else?

#![allow(
    clippy::incompatible_msrv,
    reason = "the oldest Rust compiles no tests"
)]

#[path = "../../../core/tests/support/child.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use all of it")]
mod child;
#[cfg(target_os = "linux")]
#[path = "../../../core/tests/support/computing.rs"]
mod computing;
#[path = "../../../../tests/support/gate.rs"]
mod gate;
#[path = "../../../core/tests/support/limit.rs"]
#[allow(unreachable_pub, reason = "other tests use it as a module of theirs")]
mod limit;
#[cfg(target_os = "linux")]
#[path = "../../../core/tests/support/wait.rs"]
#[allow(unreachable_pub, reason = "other tests use it as a module of theirs")]
mod wait;

#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod ended;
mod ends;
#[cfg(target_os = "linux")]
mod forked;
#[cfg(target_os = "linux")]
mod innocent;
mod layers;
mod named;
mod pools;
mod refused;
mod reports;
mod setting;
#[cfg(target_os = "linux")]
mod unnamed;
