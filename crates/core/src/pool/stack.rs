//! How deep on its stack a rayon worker is.
//!
//! A rayon worker that waits (in `join`, in `scope`, for another pool) runs other work
//! that it finds, on top of the waiting frames. Rayon has no API to ask for that. A
//! drain job (see `pool/mod.rs`) must not run a job of the lane there: the waiting
//! job would have to wait for an unrelated one.
//!
//! Rayon calls a drain job from its main loop through the same frames each time. So a
//! drain job can tell from its depth where it runs: at the *bottom* of the stack, or
//! deeper.

use std::cell::Cell;
use std::hint::black_box;

thread_local! {
    /// Where the worker's own frames end and those of rayon's main loop begin.
    static BASE: Cell<usize> = const { Cell::new(0) };
}

#[inline(never)]
fn position() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(black_box(&marker)) as usize
}

/// A worker calls it right before rayon's main loop.
#[inline(never)]
pub(crate) fn mark_base() {
    BASE.set(position());
}

/// How deep this thread is in rayon's main loop, in bytes.
#[inline(always)]
pub(crate) fn depth() -> usize {
    BASE.get().wrapping_sub(position())
}
