//! The atomics of a record. `tests/models` compiles `record.rs` with loom's in place of this module.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64};
