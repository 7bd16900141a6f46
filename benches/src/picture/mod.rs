//! What the pictures of the benches are made of.

pub mod timeline;
pub mod words;
