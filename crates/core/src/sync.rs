//! The building blocks of our protocols: the atomics of the standard library, its threads and
//! channels, and a queue and a waker slot of maintained crates.
//!
//! The files that hold a protocol import from here only. `tests/models` compiles the same
//! files with loom's types in place of this module, and with shuttle's.

pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicIsize, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
pub(crate) use std::sync::{Mutex, MutexGuard, mpsc};
pub(crate) use std::thread_local;

pub(crate) use atomic_waker::AtomicWaker;
pub(crate) use crossbeam_queue::SegQueue as Queue;
pub(crate) use giveway::spawn;

/// Does nothing; under loom it is a `SeqCst` fence.
///
/// loom treats `SeqCst` accesses as `AcqRel`. Where a protocol relies on the single
/// order of `SeqCst` accesses, its model needs a fence between them. The machine does
/// not need it, and a fence costs as much as two locked instructions.
pub(crate) fn fence_of_loom() {}
