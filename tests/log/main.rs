//! What reaches the log because no task would carry it?

mod jobs;
mod streams;
mod tap;

#[path = "../support/mod.rs"]
mod support;
