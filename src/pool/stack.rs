//! Where on its stack a rayon worker is.
//!
//! A rayon worker that waits (in `join`, in `scope`, for another pool) runs
//! whatever work it finds, on top of the frames that wait, and tells nothing of
//! it. A ticket (see `backend/rayon.rs`) must not start a job of ours there: the
//! waiting job would then wait for a stranger. Rayon calls a ticket from its main
//! loop through the same frames each time, so a ticket knows by its depth where it
//! is: at the *bottom* of the stack, or deeper.

use std::cell::Cell;
use std::hint::black_box;

thread_local! {
    /// Where a worker's own frames end and those of rayon's main loop begin.
    static BASE: Cell<usize> = const { Cell::new(0) };
}

#[inline(never)]
fn position() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(black_box(&marker)) as usize
}

/// Called by a worker right before rayon's main loop.
#[inline(never)]
pub(crate) fn mark_base() {
    BASE.set(position());
}

/// How deep this thread is in rayon's main loop, in bytes.
#[inline(always)]
pub(crate) fn depth() -> usize {
    BASE.get().wrapping_sub(position())
}
