//! Where on its stack a rayon worker is.
//!
//! A rayon worker that waits (in `join`, in `scope`, for another pool) runs
//! whatever work it finds, on top of the frames that wait, and tells nobody.
//! Two things must not happen there:
//!
//! - A ticket (see `backend/rayon.rs`) must not start another job of ours on
//!   that stack: the waiting job would then wait for a stranger. So a ticket
//!   asks [`is_at_bottom`]: rayon calls it from one place, its main loop, at
//!   one depth. Each worker measures that depth once, when it starts and
//!   nothing else can be on its stack.
//! - A rayon child of job B, stolen by the worker of the waiting job A, must
//!   not take itself for a part of A. Between it and A's frames there is a
//!   function of rayon's that looks for work: the one that waits, or one of
//!   the yields. [`is_unbroken_since`] walks the stack and looks for them.
//!   Their addresses are learned on the occasion of the first measurement: they
//!   are among the frames below a ticket that each of them called, and not
//!   among those that every `catch_unwind` makes.
//!
//! One way is not seen: `join` itself runs what a stolen child has spawned on
//! this worker, directly, from a frame that is generic and so has no address to
//! learn.
//!
//! Where a stack can't be walked (`panic = "abort"` without unwind tables), the
//! second question is answered "no": a job then sees its cancellation through a
//! captured `JobContext` only.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ffi::c_void;
use std::hint::black_box;

thread_local! {
    static BOTTOM: Cell<Option<usize>> = const { Cell::new(None) };
    /// Entry addresses of rayon's functions that call others' work.
    static CALLERS: RefCell<HashSet<usize>> = RefCell::new(HashSet::new());
}

/// A place on this thread's stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position(usize);

impl Position {
    #[inline(never)]
    pub(crate) fn here() -> Self {
        let marker = 0_u8;
        Self(std::ptr::from_ref(black_box(&marker)) as usize)
    }
}

/// The functions on the stack of this thread, innermost first, each with the
/// address of its frame; until `visit` says that it has seen enough.
fn walk(mut visit: impl FnMut(usize, usize) -> bool) {
    backtrace::trace(|frame| visit(address(frame.symbol_address()), address(frame.sp())));
}

fn address(pointer: *mut c_void) -> usize {
    pointer as usize
}

fn functions() -> HashSet<usize> {
    let mut all = HashSet::new();
    walk(|function, _| {
        all.insert(function);
        true
    });
    all
}

/// Called in a worker's thread before rayon's main loop: the functions that are
/// below any code here, and those that a caught closure brings with it.
pub(crate) fn functions_below_main_loop() -> HashSet<usize> {
    std::panic::catch_unwind(functions).unwrap_or_default()
}

/// Called in a ticket at the bottom of a worker's stack.
#[inline(never)]
pub(crate) fn learn_bottom(position: Position, below_main_loop: &HashSet<usize>) {
    BOTTOM.set(Some(position.0));
    learn_callers(below_main_loop);
}

/// Called in work that one of rayon's functions has called.
pub(crate) fn learn_callers(below_main_loop: &HashSet<usize>) {
    let callers = functions();
    CALLERS.with_borrow_mut(|known| known.extend(callers.difference(below_main_loop)));
}

/// Whether a ticket that runs at `position` was called by the main loop.
pub(crate) fn is_at_bottom(position: Position) -> bool {
    BOTTOM.get() == Some(position.0)
}

/// Whether no search of rayon's for work lies between `since` and the caller. Always so
/// on threads that are no rayon workers.
pub(crate) fn is_unbroken_since(since: &Position) -> bool {
    if BOTTOM.get().is_none() {
        return true;
    }
    CALLERS.with_borrow(|callers| {
        let mut reached = false;
        let mut broken = false;
        walk(|function, frame| {
            // Stacks grow downwards on every platform that rayon runs on.
            reached = frame > since.0;
            broken = !reached && callers.contains(&function);
            !reached && !broken
        });
        reached && !broken
    })
}
