//! What a thread knows: which handle is current, which worker it is, which job
//! it runs.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, PoisonError, RwLock};

use crate::budget;
use crate::error::{Cancelled, NoCurrentHandle};
use crate::handle::Handle;
use crate::job::Cancel;
use crate::lane::{Lane, Level};
use crate::stack;

thread_local! {
    /// Entered by the user, innermost last.
    static ENTERED: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
    /// Of the lane whose thread this is.
    static OWN: RefCell<Option<Handle>> = const { RefCell::new(None) };
    static WORKER: Cell<Option<usize>> = const { Cell::new(None) };
    static JOB: RefCell<Option<Running>> = const { RefCell::new(None) };
}

static PROCESS_DEFAULT: RwLock<Option<Handle>> = RwLock::new(None);

struct Running {
    job: Arc<dyn Cancel>,
    /// Where the job's frames begin on this thread's stack.
    frame: stack::Position,
}

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

/// Of the lane whose thread this is, if it is one's.
fn ask_own_level<R>(ask: impl FnOnce(&Level) -> R) -> Option<R> {
    let own = OWN.try_with(|own| own.borrow().as_ref().map(|own| ask(own.level())));
    own.ok().flatten()
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
    let is_worker =
        WORKER.get().is_some() || JOB.try_with(|job| job.borrow().is_some()).unwrap_or(false);
    (is_worker && Arc::ptr_eq(own.lane(), lane)).then_some(own)
}

/// Runs a step of `job` with the job as this thread's current one.
pub(crate) fn in_job<J: Cancel + 'static, R>(job: &Arc<J>, step: impl FnOnce() -> R) -> R {
    let running = Running {
        job: job.clone(),
        frame: stack::Position::here(),
    };
    let before = JOB.replace(Some(running));
    budget::begin_step();
    let result = step();
    drop(JOB.replace(before));
    result
}

fn running_job(only_cancelled: bool) -> Option<Arc<dyn Cancel>> {
    let look = |running: &RefCell<Option<Running>>| {
        let running = running.borrow();
        let running = running.as_ref()?;
        if only_cancelled && !running.job.cancel_is_wanted() {
            return None;
        }
        // The dear question comes last: a rayon worker that waits runs
        // whatever it finds, on top of its own job's frames.
        stack::is_unbroken_since(&running.frame).then(|| running.job.clone())
    };
    JOB.try_with(look).ok().flatten()
}

/// The job that this code is part of, for its rayon children to capture.
///
/// `None` outside a job, and in a rayon child of one, even if that runs on a
/// thread where another job waits. So ask in the job itself, and let the
/// children capture the answer. (One way is left in which a child may take the
/// job below it for its own: if a stolen child spawns another, and the job
/// below is in the second half of a `join`, which runs it without a wait.)
///
/// Costs a walk up the stack on the rayon backend (microseconds: it looks for
/// a wait of rayon's between here and the job), nothing on the other.
///
/// ```
/// # let io = tokio::runtime::Runtime::new().unwrap();
/// # let _io = io.enter();
/// # let cpu = twolane::CpuRuntime::new().unwrap();
/// use rayon::prelude::*;
/// let sum = cpu.spawn_cpu(|| {
///     let job = twolane::current_job().expect("inside a job");
///     (0..1000_u64).into_par_iter().try_fold(|| 0, |sum, n| {
///         job.checkpoint()?; // stops soon after the task is dropped
///         Ok::<_, twolane::Cancelled>(sum + n)
///     }).try_reduce(|| 0, |a, b| Ok(a + b))
/// });
/// assert_eq!(sum.wait().unwrap(), Ok(499_500));
/// ```
pub fn current_job() -> Option<JobContext> {
    running_job(false).map(|job| JobContext { job })
}

/// Asks whether the job that this code is part of is still wanted.
///
/// For closures that run long, and for long stretches of a future without an
/// `.await`: call it every now and then (it costs nanoseconds) and return early
/// on an error. `Ok` outside a job. In the
/// children of a parallel iterator it sees nothing; let them capture a
/// [`JobContext`] instead.
///
/// # Errors
/// [`Cancelled`] once the job's task was dropped or cancelled, or its lane
/// shuts down.
///
/// ```
/// # let io = tokio::runtime::Runtime::new().unwrap();
/// # let _io = io.enter();
/// # let cpu = twolane::CpuRuntime::new().unwrap();
/// let task = cpu.spawn_cpu(|| -> Result<u64, twolane::Cancelled> {
///     let mut n = 0;
///     loop {
///         twolane::checkpoint()?;
///         n += 1;
///         if n == 1_000 { return Ok(n) }
///     }
/// });
/// assert_eq!(task.wait().unwrap(), Ok(1_000));
/// ```
pub fn checkpoint() -> Result<(), Cancelled> {
    match running_job(true) {
        Some(_) => Err(Cancelled),
        None => Ok(()),
    }
}

/// A job as its children see it; cheap to clone, sendable anywhere.
///
/// See [`current_job`].
#[derive(Clone)]
pub struct JobContext {
    job: Arc<dyn Cancel>,
}

impl JobContext {
    /// As the free [`checkpoint`], for the job that this context is of,
    /// wherever it is asked.
    ///
    /// # Errors
    /// [`Cancelled`] once the job's task was dropped or cancelled, or its lane
    /// shuts down.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.spawn_cpu(|| twolane::current_job().unwrap().checkpoint());
    /// assert_eq!(task.wait().unwrap(), Ok(()));
    /// ```
    pub fn checkpoint(&self) -> Result<(), Cancelled> {
        if self.job.cancel_is_wanted() {
            Err(Cancelled)
        } else {
            Ok(())
        }
    }

    /// Runs `f` with the `tracing` span and subscriber that the job was
    /// submitted with, which a rayon child on another thread does not have.
    /// Without the `tracing` feature it just runs `f`.
    ///
    /// ```
    /// # let io = tokio::runtime::Runtime::new().unwrap();
    /// # let _io = io.enter();
    /// # let cpu = twolane::CpuRuntime::new().unwrap();
    /// let task = cpu.spawn_cpu(|| {
    ///     let job = twolane::current_job().unwrap();
    ///     rayon::join(|| job.in_span(|| 1), || job.in_span(|| 2))
    /// });
    /// assert_eq!(task.wait().unwrap(), (1, 2));
    /// ```
    pub fn in_span<R>(&self, f: impl FnOnce() -> R) -> R {
        let mut f = Some(f);
        let mut result = None;
        self.job.in_span(&mut || {
            result = f.take().map(|f| f());
        });
        result.expect("a span's scope runs its closure once")
    }
}

// As Tokio's own: no panic passes through a lane's code half-way, since every
// call of foreign code in it is caught.
impl UnwindSafe for JobContext {}
impl RefUnwindSafe for JobContext {}

impl fmt::Debug for JobContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobContext")
            .field("cancelled", &self.job.cancel_is_wanted())
            .finish_non_exhaustive()
    }
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
