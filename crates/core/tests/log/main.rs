//! What reaches the log because no task would carry it?

mod jobs;

#[path = "../support/mod.rs"]
mod support;
#[path = "../support/tap.rs"]
mod tap;
