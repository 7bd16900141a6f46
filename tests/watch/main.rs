//! Does the watch name what keeps a thread of the I/O lane, and nothing else?

#[path = "../support/mod.rs"]
mod support;

mod cpu_lane;
mod ends;
#[cfg(target_os = "linux")]
mod forked;
mod innocent;
mod layers;
mod named;
mod refused;
mod reports;
mod setting;
#[cfg(all(target_os = "linux", feature = "stall-stacks"))]
mod stack;
#[cfg(target_os = "linux")]
mod unnamed;
