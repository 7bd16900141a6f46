//! The lane: what comes into it, which thread runs it, and what can be seen of that.

mod admission;
mod bad_settings;
mod beside_a_join;
mod call_sites;
#[cfg(feature = "hyper")]
mod executors;
mod fan_out;
#[cfg(target_os = "linux")]
mod helped;
mod idle_workers;
mod install;
mod max_wait;
mod metrics;
mod names;
mod nested;
mod order;
#[cfg(feature = "test-util")]
mod paused_clock;
mod priorities;
mod rayon_pool;
#[cfg(target_os = "linux")]
mod short_first;
mod threads;
mod tokio_handle;
mod tokio_tasks;
mod types;
mod without_io;

#[cfg(target_os = "linux")]
#[path = "../support/computing.rs"]
mod computing;
#[path = "../support/joins.rs"]
mod joins;
#[cfg(feature = "test-util")]
#[path = "../support/paused.rs"]
mod paused;
#[path = "../support/shows.rs"]
mod shows;
#[path = "../support/stepped.rs"]
mod stepped;
#[path = "../support/mod.rs"]
mod support;
