//! What a thread knows of the lanes: which one it belongs to, as which worker, which
//! handle was entered on it, which permit covers what it submits.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use super::inherit::Inherited;
use super::{Lane, Level};
use crate::priority::Priority;
use crate::task::budget;

struct Thread {
    /// The level whose thread this is.
    own: RefCell<Option<Level>>,
    /// Its number among that level's workers.
    worker: Cell<Option<usize>>,
    /// Entered by the user, innermost last.
    entered: RefCell<Vec<Level>>,
    inherited: RefCell<Inherited>,
    /// Spreads threads over what is cut in shards.
    number: Cell<Option<usize>>,
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            own: RefCell::new(None),
            worker: Cell::new(None),
            entered: RefCell::new(Vec::new()),
            inherited: RefCell::new(Inherited::No),
            number: Cell::new(None),
        }
    };
}

static PROCESS_DEFAULT: RwLock<Option<Level>> = RwLock::new(None);

/// None while the thread ends: a destructor that runs then may ask all the same.
fn ask<R>(f: impl FnOnce(&Thread) -> R) -> Option<R> {
    THREAD.try_with(f).ok()
}

/// What a free function uses: entered explicitly, else the own level of this thread,
/// else the process's default.
pub(crate) fn current() -> Option<Level> {
    let of_thread = ask(|thread| {
        let entered = thread.entered.borrow().last().cloned();
        entered.or_else(|| thread.own.borrow().clone())
    });
    of_thread.flatten().or_else(|| {
        let default = PROCESS_DEFAULT.read();
        default.unwrap_or_else(PoisonError::into_inner).clone()
    })
}

pub(crate) fn set_process_default(level: Option<Level>) -> Option<Level> {
    let mut default = PROCESS_DEFAULT
        .write()
        .unwrap_or_else(PoisonError::into_inner);
    std::mem::replace(&mut default, level)
}

/// How many levels are entered, this one included: for [`leave`].
pub(crate) fn enter(level: &Level) -> Option<usize> {
    ask(|thread| {
        let mut entered = thread.entered.borrow_mut();
        entered.push(level.clone());
        entered.len()
    })
}

/// Leaves the level that was entered as number `depth`, and all inside of it. False if
/// it was not the innermost.
pub(crate) fn leave(depth: usize) -> bool {
    let left = ask(|thread| {
        let mut entered = thread.entered.borrow_mut();
        let is_innermost = entered.len() == depth;
        let from = entered.len().min(depth - 1);
        (is_innermost, entered.split_off(from))
    });
    // What is left is dropped outside the borrow.
    left.is_none_or(|(is_innermost, _)| is_innermost)
}

/// Runs `f` with `level` as if it had been entered, innermost.
pub(crate) fn with_entered<R>(level: &Level, f: impl FnOnce() -> R) -> R {
    struct Leave(Option<usize>);
    impl Drop for Leave {
        fn drop(&mut self) {
            self.0.map(leave);
        }
    }
    let _leave = Leave(enter(level));
    f()
}

/// A thread of the level starts, as the worker of this number, if it is one.
pub(crate) fn start(level: Level, worker: Option<usize>) {
    THREAD.with(|thread| {
        thread.own.replace(Some(level));
        thread.worker.set(worker);
    });
}

/// The thread ends: gives back what [`start`] was given.
pub(crate) fn end() -> Option<Level> {
    ask(|thread| {
        thread.worker.set(None);
        thread.own.take()
    })
    .flatten()
}

pub(super) fn worker() -> Option<usize> {
    ask(|thread| thread.worker.get()).flatten()
}

/// Spreads threads over what is cut in shards.
pub(super) fn number() -> usize {
    // Relaxed: the numbers only have to be spread.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = ask(|thread| {
        let number = thread.number.get();
        let number = number.unwrap_or_else(|| NEXT.fetch_add(1, Relaxed));
        thread.number.set(Some(number));
        number
    });
    number.unwrap_or(0)
}

pub(super) fn inherited() -> Inherited {
    ask(|thread| thread.inherited.borrow().clone()).unwrap_or_default()
}

pub(super) fn set_inherited(inherited: Inherited) -> Inherited {
    ask(|thread| thread.inherited.replace(inherited)).unwrap_or_default()
}

/// Whether this thread belongs to `level`: its workers, and those of the same
/// runtime that may become some.
pub(crate) fn is_of(level: &Level) -> bool {
    ask_own(|own| own.priority() == level.priority() && Arc::ptr_eq(own.lane(), level.lane()))
        .unwrap_or(false)
}

/// Whether this thread is `lane`'s, a worker or not.
pub(super) fn is_of_lane(lane: &Arc<Lane>) -> bool {
    ask_own(|own| Arc::ptr_eq(own.lane(), lane)).unwrap_or(false)
}

/// The priority that this thread serves, in whatever lane.
pub(super) fn own_priority() -> Option<Priority> {
    ask_own(Level::priority)
}

/// Whether this thread is one of `lane`'s workers.
pub(crate) fn is_worker_of(lane: &Arc<Lane>) -> bool {
    level_served_in(lane).is_some()
}

/// The same, and the start hook of its user has not yet returned.
pub(crate) fn is_starting_worker_of(lane: &Arc<Lane>) -> bool {
    level_served_in(lane).is_some_and(|level| level.workers().is_none())
}

fn level_served_in(lane: &Arc<Lane>) -> Option<Level> {
    let own = ask_own(Level::clone)?;
    // In a job there is no doubt. Elsewhere on the lane's threads the index
    // tells; Tokio may have made a worker of a thread that has none.
    let is_worker = worker().is_some() || budget::runs_a_job();
    (is_worker && Arc::ptr_eq(own.lane(), lane)).then_some(own)
}

fn ask_own<R>(f: impl FnOnce(&Level) -> R) -> Option<R> {
    ask(|thread| thread.own.borrow().as_ref().map(f)).flatten()
}
