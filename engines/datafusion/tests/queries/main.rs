//! Queries on a lane, seen from outside: where they compute, how they end.

mod dropped;
mod ends;
mod fed;
mod files;
#[path = "../../../../tests/support/gate.rs"]
mod gate;
mod lanes;
mod rule;
mod setting;
#[path = "../../../../crates/core/tests/support/mod.rs"]
mod support;
mod texts;
