//! One job, or many: what a task gives, and when it is stopped.

mod blocking_waits;
#[cfg(feature = "tracing")]
mod contexts;
mod coop_budget;
mod destructors;
mod ends;
mod giving_way;
mod joining;
mod large;
mod results;
mod unwinding;
mod within;

#[cfg(feature = "tracing")]
#[path = "../support/log.rs"]
mod log;
#[path = "../support/mod.rs"]
mod support;
