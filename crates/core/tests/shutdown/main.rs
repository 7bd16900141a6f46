//! Shutdown: what becomes of each job, and where it may happen.

mod drop_anywhere;
mod forms;
mod left_behind;
mod parts;
mod races;
mod reaper;
mod thread_locals;

#[path = "../support/parts_of.rs"]
mod parts_of;
#[path = "../support/mod.rs"]
mod support;
