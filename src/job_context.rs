//! Which job a thread runs, and what its code may ask of that: [`current_job`],
//! [`checkpoint`]; and what it inherits to what it submits.

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::mem;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr;
use std::sync::{Arc, Weak};

use crate::budget;
use crate::context;
use crate::job::Cancel;
use crate::lane::{Lane, Place, WeakPlace};
use crate::stack;

thread_local! {
    static JOB: RefCell<Option<Running>> = const { RefCell::new(None) };
    /// On the I/O lane: the job which has submitted what runs here.
    static PART_OF: RefCell<ParentOfIo> = const { RefCell::new(ParentOfIo::None) };
}

struct Running {
    job: Arc<dyn Cancel>,
    /// Where the job's frames begin on this thread's stack.
    frame: stack::Position,
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

pub(crate) fn runs_a_job() -> bool {
    JOB.try_with(|job| job.borrow().is_some()).unwrap_or(false)
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

/// Whether what is submitted here is part of a job of `lane`.
pub(crate) enum Parent {
    None,
    /// It is, of one that came in by no place; or nobody knows of which.
    Without,
    With(Place),
}

/// Nobody needs to know where no priority has a limit: then none.
pub(crate) fn parent(lane: &Arc<Lane>) -> Parent {
    if !lane.has_gates {
        return Parent::None;
    }
    let is_here = |place: &Place| place.is_in(lane);
    if context::is_thread_of_lane(lane) {
        // Without a look at the stack: where a worker waits and runs another
        // job's child, that goes in by the place of the one that waits.
        let place = |running: &RefCell<Option<Running>>| running.borrow().as_ref()?.job.place();
        let place = JOB.try_with(place).ok().flatten().filter(is_here);
        return place.map_or(Parent::Without, Parent::With);
    }
    let parent = PART_OF.try_with(|parent| match &*parent.borrow() {
        ParentOfIo::None => Parent::None,
        ParentOfIo::Without(lane_of_it) if ptr::eq(lane_of_it.as_ptr(), &raw const **lane) => {
            Parent::Without
        }
        ParentOfIo::Without(_) => Parent::None,
        ParentOfIo::With(place) => {
            let place = place.upgrade().filter(is_here);
            place.map_or(Parent::None, Parent::With)
        }
    });
    parent.unwrap_or(Parent::None)
}

impl Parent {
    /// What of it goes with a future on the I/O lane, which may outlive the job: no
    /// place, but the right to go in by that one as long as somebody holds it.
    pub(crate) fn for_io(self, lane: &Arc<Lane>) -> ParentOfIo {
        match self {
            Self::None => ParentOfIo::None,
            Self::Without => ParentOfIo::Without(Arc::downgrade(lane)),
            Self::With(place) => ParentOfIo::With(place.downgrade()),
        }
    }
}

#[derive(Clone)]
pub(crate) enum ParentOfIo {
    None,
    Without(Weak<Lane>),
    With(WeakPlace),
}

/// Until the answer is dropped, what is submitted on this thread is part of that
/// job.
pub(crate) fn part_of(parent: ParentOfIo) -> impl Drop {
    struct Before(ParentOfIo);
    impl Drop for Before {
        fn drop(&mut self) {
            let before = mem::replace(&mut self.0, ParentOfIo::None);
            drop(PART_OF.try_with(|parent| parent.replace(before)));
        }
    }
    let before = PART_OF.try_with(|before| before.replace(parent));
    Before(before.unwrap_or(ParentOfIo::None))
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
/// [`Cancelled`] once the job's task was dropped or cancelled, its deadline has
/// passed, or its lane shuts down.
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
    /// [`Cancelled`] once the job's task was dropped or cancelled, its deadline has
    /// passed, or its lane shuts down.
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

/// The job that asked was cancelled, dropped, is past its deadline, or is on a
/// lane that shuts down. Returned by [`checkpoint`](crate::checkpoint).
///
/// ```
/// fn rows(n: u32) -> Result<u32, twolane::Cancelled> {
///     for _ in 0..n {
///         twolane::checkpoint()?; // Ok everywhere but in a cancelled job
///     }
///     Ok(n)
/// }
/// assert_eq!(rows(3), Ok(3));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the job is to end: it was cancelled, its deadline passed, or its lane shuts down",
        )
    }
}

impl Error for Cancelled {}
