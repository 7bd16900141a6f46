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

#[path = "../support/mod.rs"]
mod support;
