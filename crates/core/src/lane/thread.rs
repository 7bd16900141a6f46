//! What a thread knows about the lanes: its own lane and worker index, and the handles
//! entered on it.
//!
//! **Which submissions need a permit.** A job that waits for another job must not wait for a
//! permit that it holds itself. So the threads of a lane submit to it without one: what they
//! run is part of a job that has one, or never needed it. The same holds inside a future that
//! a job gives to `spawn_io` ([`is_exempt`]), until the task of that future is detached.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, PoisonError, RwLock};

use super::{Lane, Levels, Submitter};
use crate::panics;
use crate::priority::Priority;
use crate::sync::{Ordering::SeqCst, thread_local};
use crate::task::worker::is_running;

/// The worker's index of a control thread.
pub(crate) const CONTROL: usize = usize::MAX;
/// That of a thread that runs its start hooks, and of a launcher.
pub(super) const STARTING: usize = usize::MAX - 1;

struct ThreadContext {
    /// The lane that counts this thread among its own: see [`join_lane`].
    counted_by: Cell<Option<Arc<Lane>>>,
    /// The lane and the priority that this thread belongs to.
    own: RefCell<Option<Submitter>>,
    /// Its index among that level's workers.
    worker: Cell<Option<usize>>,
    /// What has been entered, innermost last.
    entered: RefCell<Vec<Entered>>,
}

struct Entered {
    /// Above that of all outside it.
    number: usize,
    submitter: Submitter,
    /// What is submitted inside needs no permit of the level's lane.
    is_exempt: bool,
}

thread_local! {
    static THREAD: ThreadContext = const {
        ThreadContext {
            counted_by: Cell::new(None),
            own: RefCell::new(None),
            worker: Cell::new(None),
            entered: RefCell::new(Vec::new()),
        }
    };
}

/// Call first on a thread of the lane: counts it, until the destructors of its
/// thread-locals have run.
///
/// A destructor is user code that may block. A thread runs those of its thread-locals in
/// the reverse order of their first use, so [`THREAD`] goes last. (The order is that of the
/// platforms, not a promise of Rust; `tests/shutdown/thread_locals.rs` pins it.)
///
/// `niced`: it gets the nice value of that priority.
pub(crate) fn join_lane(lane: &Arc<Lane>, niced: Option<Priority>) {
    lane.alive.fetch_add(1, SeqCst);
    THREAD.with(|thread| thread.counted_by.set(Some(lane.clone())));
    if let Some(priority) = niced {
        if let Err(refused) = lane.settings.niceness.weight(priority).apply() {
            lane.note_refused_nice(lane.settings.nice(priority), refused);
        }
    }
}

impl Drop for ThreadContext {
    fn drop(&mut self) {
        if let Some(lane) = self.counted_by.take() {
            // This may be the last reference, with the hooks of the user.
            panics::run_hook("the end of a thread", move || lane.thread_ended());
        }
    }
}

static PROCESS_DEFAULT: RwLock<Option<Submitter>> = RwLock::new(None);

/// Returns `None` while the thread ends: a destructor may still call this then.
fn with_thread<R>(f: impl FnOnce(&ThreadContext) -> R) -> Option<R> {
    THREAD.try_with(f).ok()
}

/// Returns what a free function submits by: the innermost entered one, else the own one
/// of this thread, else the process default. Without its deadline, which is for the jobs of the
/// handle that has it.
pub(crate) fn current() -> Option<Submitter> {
    let innermost =
        |thread: &ThreadContext| Some(thread.entered.borrow().last()?.submitter.clone());
    let entered = with_thread(innermost).flatten();
    let own = || ask_own(Submitter::clone);
    let current = entered.or_else(own).or_else(|| {
        let default = PROCESS_DEFAULT.read();
        default.unwrap_or_else(PoisonError::into_inner).clone()
    });
    current.map(Submitter::without_deadline)
}

pub(crate) fn set_process_default(submitter: Option<Submitter>) -> Option<Submitter> {
    let default = PROCESS_DEFAULT.write();
    let mut default = default.unwrap_or_else(PoisonError::into_inner);
    std::mem::replace(&mut default, submitter)
}

/// Takes the submitter, and enters it. Returns its number, for [`leave`]: 0 if the thread ends,
/// which takes none. `is_exempt`: what is submitted inside needs no permit of its lane.
pub(crate) fn enter(submitter: &mut Option<Submitter>, is_exempt: bool) -> usize {
    let number = with_thread(|thread| {
        let mut entered = thread.entered.borrow_mut();
        let number = entered.last().map_or(1, |outer| outer.number + 1);
        entered.push(Entered {
            number,
            submitter: submitter.take()?,
            is_exempt,
        });
        Some(number)
    });
    number.flatten().unwrap_or(0)
}

/// Leaves the one that was entered with that number, and no other. Returns it, and whether it was
/// the innermost one: `None` if the thread ends.
pub(crate) fn leave(number: usize) -> Option<(Submitter, bool)> {
    let remove = |thread: &ThreadContext| {
        let mut entered = thread.entered.borrow_mut();
        let at = entered.iter().rposition(|it| it.number == number)?;
        Some((entered.remove(at).submitter, at == entered.len()))
    };
    // The caller drops it, outside the borrow: it may hold the last reference to its lane.
    with_thread(remove).flatten()
}

/// Called when a thread of that lane and priority starts. `worker` is its index, if it is a worker.
pub(crate) fn join_level(own: Submitter, worker: Option<usize>) {
    THREAD.with(|thread| {
        thread.own.replace(Some(own));
        thread.worker.set(worker);
    });
}

/// The same, for a thread that runs jobs or tasks of the user: it runs the start hooks first.
pub(crate) fn start_level(own: Submitter, worker: Option<usize>) {
    join_level(own, Some(STARTING));
    ask_own(|own| own.levels.lane.settings.run_start_hooks());
    THREAD.with(|thread| thread.worker.set(worker));
}

/// Called when the thread ends.
pub(crate) fn leave_level() {
    // Not while it is borrowed: it may be the last reference to the lane.
    drop(with_thread(|thread| thread.own.take()));
}

pub(crate) fn worker_index() -> Option<usize> {
    with_thread(|thread| thread.worker.get()).flatten()
}

/// Whether this thread runs start hooks of that lane: then it may not wait for threads of the lane, which
/// may be itself.
pub(crate) fn is_starting(lane: &Arc<Lane>) -> bool {
    worker_index() == Some(STARTING) && is_of_lane(lane)
}

/// Whether what this thread submits to that lane needs no permit: it is a thread of the lane, or
/// polls a future that such a thread, or another one of these futures, has given to `spawn_io`.
pub(crate) fn is_exempt(levels: &Arc<Levels>) -> bool {
    let is_it = |submitter: &Submitter| Arc::ptr_eq(&submitter.levels, levels);
    let covers = |entered: &Entered| entered.is_exempt && is_it(&entered.submitter);
    levels.may_refuse()
        && (is_of_lane(&levels.lane)
            || with_thread(|thread| thread.entered.borrow().iter().any(covers)).unwrap_or(false))
}

/// Whether this thread belongs to `lane`, as a worker or not.
pub(crate) fn is_of_lane(lane: &Arc<Lane>) -> bool {
    ask_own(|own| Arc::ptr_eq(&own.levels.lane, lane)).unwrap_or(false)
}

/// Whether this thread is one of `lane`'s workers.
pub(crate) fn is_worker_of(lane: &Arc<Lane>) -> bool {
    // A job may run beside its parts, on a thread without an index.
    (worker_index().is_some() || is_running()) && is_of_lane(lane)
}

/// Asks what this thread belongs to, in any lane. `f` may be code of the user: only the start and
/// the end of a thread change it.
pub(crate) fn ask_own<R>(f: impl FnOnce(&Submitter) -> R) -> Option<R> {
    with_thread(|thread| thread.own.borrow().as_ref().map(f)).flatten()
}
