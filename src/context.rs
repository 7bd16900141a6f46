//! What a thread knows: which handle is current, which worker of which lane it is.
//! Which permit it submits by: `inherit.rs`.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, PoisonError, RwLock};

use crate::budget;
use crate::current::NoCurrentHandle;
use crate::handle::Handle;
use crate::lane::{Lane, Level};
use crate::priority::Priority;

thread_local! {
    /// Entered by the user, innermost last.
    static ENTERED: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
    /// Of the lane whose thread this is.
    static OWN: RefCell<Option<Handle>> = const { RefCell::new(None) };
    static WORKER: Cell<Option<usize>> = const { Cell::new(None) };
}

static PROCESS_DEFAULT: RwLock<Option<Handle>> = RwLock::new(None);

/// The handle that a free function uses: entered explicitly, else the own one
/// of this thread's lane, else the process's.
pub(crate) fn current_handle() -> Result<Handle, NoCurrentHandle> {
    // `try_with`: a destructor that runs while its thread ends may ask too.
    ENTERED
        .try_with(|entered| entered.borrow().last().cloned())
        .ok()
        .flatten()
        .or_else(|| OWN.try_with(|own| own.borrow().clone()).ok().flatten())
        .or_else(|| {
            PROCESS_DEFAULT
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .clone()
        })
        .ok_or(NoCurrentHandle)
}

pub(crate) fn set_process_default(handle: Option<Handle>) -> Option<Handle> {
    let mut default = PROCESS_DEFAULT
        .write()
        .unwrap_or_else(PoisonError::into_inner);
    std::mem::replace(&mut default, handle)
}

/// Runs `f` with `handle` as if it had been entered, innermost.
pub(crate) fn with_entered<R>(handle: &Handle, f: impl FnOnce() -> R) -> R {
    struct Leave(Option<usize>);
    impl Drop for Leave {
        fn drop(&mut self) {
            if let Some(depth) = self.0 {
                let cut = |entered: &RefCell<Vec<Handle>>| entered.borrow_mut().split_off(depth);
                drop(ENTERED.try_with(cut));
            }
        }
    }
    // A future may be dropped while its thread ends: then there is no current
    // handle, and no harm.
    let enter = |entered: &RefCell<Vec<Handle>>| {
        let mut entered = entered.borrow_mut();
        entered.push(handle.clone());
        entered.len() - 1
    };
    let _leave = Leave(ENTERED.try_with(enter).ok());
    f()
}

/// Sets the own handle of this thread and returns the one before.
pub(crate) fn set_own_handle(handle: Option<Handle>) -> Option<Handle> {
    OWN.replace(handle)
}

/// A thread of the lane starts, as its worker number `index`.
pub(crate) fn enter_worker(handle: Handle, index: usize) {
    set_own_handle(Some(handle));
    WORKER.set(Some(index));
}

/// The thread ends: gives back what `enter_worker` was given.
pub(crate) fn leave_worker() -> Option<Handle> {
    WORKER.set(None);
    set_own_handle(None)
}

pub(crate) fn worker_index() -> Option<usize> {
    WORKER.get()
}

/// Whether this thread belongs to `level`: its workers, and those of the same
/// runtime that may become some.
pub(crate) fn is_thread_of(level: &Level) -> bool {
    ask_own_level(|own| own.priority() == level.priority() && Arc::ptr_eq(own.lane(), level.lane()))
        .unwrap_or(false)
}

/// The priority that this thread serves, in whatever lane.
pub(crate) fn own_priority() -> Option<Priority> {
    ask_own_level(Level::priority)
}

/// Of the lane whose thread this is, if it is one's.
fn ask_own_level<R>(ask: impl FnOnce(&Level) -> R) -> Option<R> {
    let own = OWN.try_with(|own| own.borrow().as_ref().map(|own| ask(own.level())));
    own.ok().flatten()
}

/// Whether this thread is `lane`'s, a worker or not.
pub(crate) fn is_thread_of_lane(lane: &Arc<Lane>) -> bool {
    ask_own_level(|own| Arc::ptr_eq(own.lane(), lane)).unwrap_or(false)
}

/// Whether this thread is one of `lane`'s workers.
pub(crate) fn is_worker_of(lane: &Arc<Lane>) -> bool {
    level_served_in(lane).is_some()
}

/// The same, and the start hook of its user has not yet returned.
pub(crate) fn is_starting_worker_of(lane: &Arc<Lane>) -> bool {
    level_served_in(lane).is_some_and(|level| level.threads().is_none())
}

fn level_served_in(lane: &Arc<Lane>) -> Option<Level> {
    let own = ask_own_level(Level::clone)?;
    // In a job there is no doubt. Elsewhere on the lane's threads the index
    // tells; Tokio may have made a worker of a thread that has none.
    let is_worker = WORKER.get().is_some() || budget::runs_a_job();
    (is_worker && Arc::ptr_eq(own.lane(), lane)).then_some(own)
}

/// While it lives, the handle it came from is the current one on this thread.
///
/// Returned by [`Handle::enter`]. Guards are left in the reverse order of their
/// making, as scopes do by themselves.
#[must_use = "the handle is current only as long as the guard lives"]
pub struct EnterGuard<'a> {
    depth: usize,
    // Bound to the thread: what it undoes is the thread's.
    _thread_bound: PhantomData<(&'a Handle, *mut ())>,
}

pub(crate) fn enter(handle: &Handle) -> EnterGuard<'_> {
    let depth = ENTERED.with_borrow_mut(|entered| {
        entered.push(handle.clone());
        entered.len()
    });
    EnterGuard {
        depth,
        _thread_bound: PhantomData,
    }
}

impl Drop for EnterGuard<'_> {
    fn drop(&mut self) {
        let left: Vec<Handle> = ENTERED.with_borrow_mut(|entered| {
            let out_of_order = entered.len() != self.depth;
            if out_of_order && !std::thread::panicking() {
                panic!("`EnterGuard`s must be dropped in the reverse order of `Handle::enter`");
            }
            entered.split_off(self.depth.saturating_sub(1).min(entered.len()))
        });
        drop(left);
    }
}

impl fmt::Debug for EnterGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnterGuard").finish_non_exhaustive()
    }
}
