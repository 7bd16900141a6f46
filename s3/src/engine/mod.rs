//! The engine at work, by each contender: what the example shows and the bench
//! measures.

pub mod contender;
pub mod cpu;
pub mod findings;
pub mod fixture;
pub mod lsm;
pub mod rounds;
pub mod slice;
pub mod verify;
