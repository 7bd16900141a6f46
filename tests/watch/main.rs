//! Does the watch of the I/O lane see what this crate runs, and end with the lane? What it sees
//! of any runtime is tested in `stallwatch`.

#[path = "../../crates/core/tests/support/mod.rs"]
mod support;

mod cpu_lane;
mod ends;
mod named;
mod setting;
mod spawned;
