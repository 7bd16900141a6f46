//! Vortex files on a lane, seen from outside: where they decode and read, how a scan ends.

mod contract;
mod ends;
#[path = "../../../../crates/core/tests/support/limit.rs"]
mod limit;
mod places;
mod setting;
