//! [`Handle::run_cpu`]: a closure that the awaiter computes itself, or the lane, whichever costs
//! less. What is learned of a call site is in `metrics/call_sites/in_place.rs`.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use stallwatch::Name;
use tokio::task::{coop, yield_now};

use super::Handle;
use crate::admission;
use crate::error::JoinError;
use crate::lane::{Level, thread};
use crate::metrics::call_sites::Place;
use crate::metrics::clock::nanos;
use crate::os::cpu_clock;
use crate::panics;
use crate::task::{Schedule, Task, closure};

thread_local! {
    /// How long this thread has computed in place since a task yielded for it, in nanoseconds.
    static SPENT: Cell<u64> = const { Cell::new(0) };
    /// How often that was.
    static TURN: Cell<u64> = const { Cell::new(0) };
}

impl Handle {
    /// Computes a closure on the CPU lane, or in place if that costs less.
    ///
    /// For closures that may be too small for the lane: a trip there and back takes 9 to 29 µs
    /// (`twolane::guide::cost`), in which a closure of 1 µs is computed many times. The future
    /// measures both at each call site. It computes the closure in its own poll, on the thread of
    /// the awaiter, while the site's closures take no longer than four trips, and never more than
    /// [`run_in_place_up_to`](crate::Builder::run_in_place_up_to) (50 µs). The first 16 closures
    /// of a site go to the lane. A thread that has computed in place for twice that limit yields.
    ///
    /// On a thread of the lane the closure is always computed in place.
    ///
    /// In place a closure is not a job:
    ///
    /// - It runs inside the awaiter's task: `block_on`, [`Task::wait`](crate::Task::wait) and
    ///   what else blocks panic or block the I/O lane there. It has Tokio's budget of the task.
    /// - It needs no permit of a limited queue, and no counter of
    ///   [`metrics`](Self::metrics) counts it. [`call_sites`](Self::call_sites) does.
    /// - What it submits itself needs a permit, as outside of jobs.
    /// - Dropping the future cannot stop it. Nor can an abort or a shutdown.
    /// - It must not wait: the limits are CPU time, so a wait for a lock or a file holds up the
    ///   awaiter's thread, and the lane never learns of it.
    /// - A closure that suddenly takes long holds up the awaiter's thread, once: the next ones go
    ///   to the lane. If some of a site's closures take long and others do not, use
    ///   [`spawn_cpu`](Self::spawn_cpu), or a [name](Self::with_name) for each kind.
    ///
    /// # Errors
    ///
    /// The same on either side: [`JoinError::is_panic`], [`is_shutdown`](JoinError::is_shutdown),
    /// [`is_expired`](JoinError::is_expired) and
    /// [`is_io_runtime_gone`](JoinError::is_io_runtime_gone); and on the lane
    /// [`is_queue_full`](JoinError::is_queue_full).
    ///
    /// # Panics
    ///
    /// Polling the future again after it is ready panics.
    ///
    /// # Cancel safety
    ///
    /// A closure that was not polled does not run. One on the lane is cancelled by the drop, as by
    /// that of its [`Task`](crate::Task).
    ///
    /// # Cost
    ///
    /// In place some 0.2 µs, for two looks at the clock and the call site's figures, and a yield
    /// for each 100 µs. The guide has the throughput for each size (`twolane::guide::cost`).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), twolane::JoinError> {
    /// let cpu = twolane::CpuRuntime::new().unwrap();
    /// let mut sum = 0;
    /// for row in ["1,2", "3,4,5"] {
    ///     // A row of a few bytes is computed in place, one of a megabyte on the lane.
    ///     let fields = move || row.split(',').filter_map(|n| n.parse::<u32>().ok()).sum::<u32>();
    ///     sum += cpu.handle().run_cpu(fields).await?;
    /// }
    /// assert_eq!(sum, 15);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn run_cpu<F, T>(&self, f: F) -> RunCpu<F, T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        RunCpu(Step::Begins {
            level: self.level().at_caller(),
            deadline: self.deadline,
            f,
            yielded_in: None,
        })
    }
}

/// A closure that is computed in place or on the CPU lane.
///
/// Returned by [`Handle::run_cpu`], which explains it.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::new().unwrap();
/// let hash = cpu.handle().run_cpu(|| b"key".iter().fold(7_u64, |h, b| h * 31 + u64::from(*b)));
/// assert_eq!(hash.await.unwrap(), 314_616);
/// # }
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct RunCpu<F, T>(Step<F, T>);

enum Step<F, T> {
    Begins {
        level: Level,
        deadline: Option<Instant>,
        f: F,
        /// The turn of the thread in which it has yielded.
        yielded_in: Option<u64>,
    },
    OnLane {
        level: Level,
        submitted: Instant,
        /// With the time that the closure took, in nanoseconds.
        task: Task<(T, u64)>,
    },
    Done,
}

// Nothing in it is pinned: a closure is moved, and a task is `Unpin`.
impl<F, T> Unpin for RunCpu<F, T> {}

impl<F, T> Future for RunCpu<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match &mut self.0 {
                Step::Begins {
                    level, yielded_in, ..
                } => {
                    let on_own_worker = level.is_own_worker();
                    let in_place = on_own_worker || level.in_place().is_cheaper();
                    if in_place && !on_own_worker && is_spent(yielded_in, budget(level)) {
                        // By the runtime, so that it looks at its other tasks and its driver first.
                        let _ = pin!(yield_now()).poll(cx);
                        return Poll::Pending;
                    }
                    let unit = ready!(coop::poll_proceed(cx));
                    let begins = mem::replace(&mut self.0, Step::Done);
                    let Step::Begins {
                        level, deadline, f, ..
                    } = begins
                    else {
                        unreachable!("it was looked at above");
                    };
                    if in_place {
                        unit.made_progress();
                        return Poll::Ready(compute(level, on_own_worker, deadline, f));
                    }
                    // The task takes a unit of its own.
                    drop(unit);
                    self.0 = on_lane(level, deadline, f);
                }
                Step::OnLane {
                    level,
                    submitted,
                    task,
                } => {
                    let result = ready!(Pin::new(task).poll(cx));
                    let result = result.map(|(output, time)| {
                        let trip = nanos(submitted.elapsed()).saturating_sub(time);
                        ran(level, time, Place::Lane(trip));
                        output
                    });
                    self.0 = Step::Done;
                    return Poll::Ready(result);
                }
                Step::Done => panic!("a `RunCpu` was polled after it was ready"),
            }
        }
    }
}

/// So long a thread computes in place before the task that it polls yields.
fn budget(level: &Level) -> u64 {
    level.lane().settings.most_in_place.saturating_mul(2)
}

/// Whether this thread has computed in place for so long that the task has to yield. The first
/// future that comes back from that yield begins the thread's next turn.
fn is_spent(yielded_in: &mut Option<u64>, budget: u64) -> bool {
    let turn = TURN.get();
    if yielded_in.take() == Some(turn) {
        SPENT.set(0);
        TURN.set(turn + 1);
    }
    let is_spent = SPENT.get() >= budget;
    if is_spent {
        *yielded_in = Some(TURN.get());
    }
    is_spent
}

fn compute<T>(
    level: Level,
    on_own_worker: bool,
    deadline: Option<Instant>,
    f: impl FnOnce() -> T,
) -> Result<T, JoinError> {
    admission::check(&level, deadline)?;
    let queued = level.installs();
    // What it submits has a line of its own.
    let entered = level.at(Name::OTHER);
    // On a thread of the lane no task of the I/O lane waits: there is nothing to learn.
    let clock = (!on_own_worker).then(|| Clock::start(level.in_place().takes_cpu_time()));
    let run = || level.timed(queued, f);
    let result = panics::catch(|| thread::with_entered(entered, false, run));
    if let Some(clock) = clock {
        let time = clock.read();
        ran(&level, time, Place::Caller);
        SPENT.set(SPENT.get().saturating_add(time));
    }
    result.map_err(JoinError::of_unwinding)
}

enum Clock {
    Cpu(Duration),
    Real(Instant),
}

impl Clock {
    /// Where the thread's CPU time cannot be read, it is real time.
    #[inline]
    fn start(of_cpu: bool) -> Self {
        match of_cpu.then(cpu_clock::of_thread).flatten() {
            Some(time) => Self::Cpu(time),
            None => Self::Real(Instant::now()),
        }
    }

    /// In nanoseconds.
    #[inline]
    fn read(&self) -> u64 {
        nanos(match self {
            Self::Cpu(began) => cpu_clock::of_thread()
                .unwrap_or_default()
                .saturating_sub(*began),
            Self::Real(began) => began.elapsed(),
        })
    }
}

fn ran(level: &Level, time: u64, place: Place) {
    level
        .in_place()
        .ran(time, place, level.lane().settings.most_in_place);
}

#[track_caller]
fn on_lane<F, T>(level: Level, deadline: Option<Instant>, f: F) -> Step<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let submitted = Instant::now();
    let timed = closure(move || {
        let clock = Clock::start(true);
        let output = f();
        (output, clock.read())
    });
    let task = admission::submit(&level, deadline, timed);
    Step::OnLane {
        level,
        submitted,
        task,
    }
}

impl<F, T> fmt::Debug for RunCpu<F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = match self.0 {
            Step::Begins { .. } => "not begun",
            Step::OnLane { .. } => "on the lane",
            Step::Done => "done",
        };
        f.debug_tuple("RunCpu").field(&step).finish()
    }
}
