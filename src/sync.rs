//! What our protocols are written with: the atomics of the standard library, a
//! queue and a waker slot of kept crates.
//!
//! The files that hold a protocol import from here only. `tests/loom`
//! compiles those very files with loom's stand-ins in the place of this one.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Mutex, MutexGuard};

pub(crate) use atomic_waker::AtomicWaker;
pub(crate) use crossbeam_queue::SegQueue as Queue;

/// loom takes `SeqCst` accesses for `AcqRel` ones. Where a protocol rests on
/// their one order, its model needs a fence in between; the machine does not, and
/// a fence costs as much as two locked instructions.
pub(crate) fn fence_of_loom() {}
