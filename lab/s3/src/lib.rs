//! What the tests and the bench of object_store share: a real S3
//! server, what does harm on the way to it, and an engine that uses it.

pub mod engine;
pub mod faults;
pub mod seen;
pub mod server;
pub mod torrent;

/// `seen.rs` says `crate::object_store`: engines/vortex has that file with another version of it.
use object_store_0_14 as object_store;
