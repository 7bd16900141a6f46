//! A small write path of an LSM engine for time series, on object storage.
//!
//! ```text
//! flush:    memtable -> sort, encode -> PUT
//! compact:  8 range GETs -> decode, merge, encode -> multipart PUT
//! ```
//!
//! Where any of this runs is not its business: a contender's (`../contender.rs`).

pub mod compact;
pub mod file;
pub mod flush;
pub mod merge;
pub mod row;
pub mod steps;

pub type Error = Box<dyn std::error::Error + Send + Sync>;
