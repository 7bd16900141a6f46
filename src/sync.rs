//! The building blocks of our protocols. `tests/loom` compiles the same files with loom's types
//! in place of this module.

pub(crate) use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use atomic_waker::AtomicWaker;
