//! The engine at work, by each contender: what the bench `flush_compact` measures.

pub mod client;
pub mod contender;
pub mod cpu;
pub mod fixture;
pub mod lsm;
pub mod slice;
pub mod verify;
