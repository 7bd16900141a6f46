//! What the operating system gives and allows: cores, quotas, nice values.

#[cfg(target_os = "linux")]
mod cpu_mask;
#[cfg(target_os = "linux")]
mod forked;
#[cfg(target_os = "linux")]
mod out_of_threads;
#[cfg(target_os = "linux")]
mod policy;
mod sizing;
#[cfg(target_os = "linux")]
mod weights;

#[path = "../support/mod.rs"]
mod support;
#[cfg(target_os = "linux")]
#[path = "../support/threads.rs"]
mod threads;
