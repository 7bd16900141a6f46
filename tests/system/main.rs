//! What the operating system gives and allows: cores, quotas, nice values, threads.

#[cfg(target_os = "linux")]
mod out_of_threads;
mod sizing;
#[cfg(target_os = "linux")]
mod weights;

#[path = "../support/mod.rs"]
mod support;
