//! Queries on a lane, seen from outside: where they compute, how they end.

mod ends;
mod fed;
mod files;
mod lanes;
mod setting;
#[path = "../../../tests/support/mod.rs"]
mod support;
