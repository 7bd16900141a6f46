//! The building blocks of our protocols, and what they ask of the lane. The model
//! checkers of `tests/models` compile the same files with their own in place of this module.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Mutex, MutexGuard};

pub(crate) use atomic_waker::AtomicWaker;
pub(crate) use twolane_core::{Handle, adapters};
