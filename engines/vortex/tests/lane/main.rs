//! Vortex files on a lane, seen from outside: where they decode and read, how a scan ends.

mod contract;
mod ends;
mod places;
#[path = "../../../../lab/s3/src/seen.rs"]
mod seen;
mod setting;
#[path = "../../../../crates/core/tests/support/mod.rs"]
mod support;

/// `seen.rs` says `crate::object_store`: lab/s3 has that file with another version of it.
use ::object_store;
