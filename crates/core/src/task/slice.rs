//! [`yield_if_due`]: how a long future yields, at almost no cost when nothing is due.
//!
//! Reading a clock is too expensive for an inner loop. So one thread of the process,
//! the ticker, counts ticks of [`TICK`] in an atomic. A call compares the count with
//! the tick at which this thread's slice began. A slice begins with a step of a job, or
//! with the job's last yield. It is over at the second tick, so it lasts one to two
//! ticks.
//!
//! The ticker parks when it is not needed. Each call makes sure that the clock word
//! says [`ASKED`], and writes it only if it does not. At each tick the ticker resets it
//! to [`NOT_ASKED`]. If no call has set it again for [`PATIENCE`] ticks, the ticker
//! sets [`PARKED`] and parks. The next call finds that and unparks the ticker.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{PoisonError, RwLock};
use std::task::{Context, Poll};
use std::thread::{self, Thread};
use std::time::Duration;

use crossbeam_queue::SegQueue;

use crate::panics;

const TICK: Duration = Duration::from_millis(5);
const TICKS_OF_A_SLICE: u32 = 2;
/// How many ticks pass without a call before the ticker parks.
const PATIENCE: u32 = 40;

/// The tick count, and in the lowest bits the demand for ticks. They share one word,
/// since each call has to read both.
static CLOCK: AtomicU32 = AtomicU32::new(NOT_ASKED);
const DEMAND: u32 = 3;
const PARKED: u32 = 0;
const NOT_ASKED: u32 = 1;
const ASKED: u32 = 2;
const ONE_TICK: u32 = 4;

/// What a thread knows of the step that it runs.
#[derive(Clone, Copy)]
pub(super) struct Step {
    is_running: bool,
    pub(super) yielded: bool,
    /// The job was polled in the CPU lane's own context, in this step or before: Tokio
    /// tasks that the lane drops may be part of it.
    pub(super) in_cpu_context: bool,
    /// The tick at which its slice began.
    slice_began: u32,
}

thread_local! {
    static STEP: Cell<Step> = const {
        Cell::new(Step {
            is_running: false,
            yielded: false,
            in_cpu_context: false,
            slice_began: 0,
        })
    };
}

/// Marks this thread as running a job's step, until [`end_step`] gets what this returns.
/// `in_cpu_context`: whether the job was polled there in an earlier step.
#[inline]
pub(super) fn begin_step(in_cpu_context: bool) -> Step {
    STEP.replace(Step {
        is_running: true,
        yielded: false,
        in_cpu_context,
        slice_began: ticks(),
    })
}

/// Returns the step that has ended.
#[inline]
pub(super) fn end_step(outer: Step) -> Step {
    change(|step| step.is_running = outer.is_running)
}

/// Returns the step as it was.
#[inline]
fn change(change: impl FnOnce(&mut Step)) -> Step {
    let mut step = STEP.get();
    change(&mut step);
    STEP.replace(step)
}

pub(crate) fn runs_a_job() -> bool {
    STEP.get().is_running
}

/// The step that has just ended on this thread yielded by other means than a [`Yield`].
pub(crate) fn set_yielded() {
    change(|step| step.yielded = true);
}

/// The step that runs on this thread, if any, polls in the CPU lane's own context.
pub(crate) fn set_in_cpu_context() {
    change(|step| step.in_cpu_context = true);
}

// Relaxed, here and below: the ticks order no other memory.
/// The tick count.
pub fn ticks() -> u32 {
    CLOCK.load(Relaxed) & !DEMAND
}

/// Keeps the ticker awake for some ticks more. Returns the clock word.
#[inline]
pub(crate) fn ask_for_ticks() -> u32 {
    let clock = CLOCK.load(Relaxed);
    if clock & DEMAND != ASKED {
        ask();
    }
    clock
}

/// Whether a slice that began at the tick `began` is over.
#[inline]
pub(crate) fn is_slice_over(began: u32) -> bool {
    have_passed(began, TICKS_OF_A_SLICE)
}

/// Whether so many ticks have passed since `began`.
#[inline]
pub(crate) fn have_passed(began: u32, count: u32) -> bool {
    let clock = ask_for_ticks();
    // The demand bits add less than one tick.
    clock.wrapping_sub(began) >= count * ONE_TICK
}

/// Returns whether the slice of the job that runs on this thread is over, so that
/// [`yield_if_due`] would yield.
///
/// For a future that is written by hand, or a loop that puts its state away before it yields.
/// It costs as little as [`yield_if_due`]. Outside a CPU job it asks for the slices of this thread, as
/// `yield_if_due` does.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::builder().worker_threads(1).build().unwrap();
/// let sum = cpu.spawn(async {
///     let (mut sum, mut batch) = (0_u64, Vec::new());
///     for n in 0..1_000 {
///         batch.push(n);
///         if twolane::is_yield_due() || batch.len() == 100 {
///             sum += batch.drain(..).sum::<u64>();
///             twolane::yield_if_due().await;
///         }
///     }
///     sum
/// });
/// assert_eq!(sum.await.unwrap(), 499_500);
/// # }
/// ```
#[inline]
pub fn is_yield_due() -> bool {
    is_slice_over(STEP.get().slice_began)
}

/// Whether a slice is over, for the ticker itself: this asks for no ticks.
pub fn has_passed(began: u32) -> bool {
    ticks().wrapping_sub(began) >= TICKS_OF_A_SLICE * ONE_TICK
}

/// What the ticker calls.
static AT_TICKS: SegQueue<Box<dyn Fn() -> bool + Send>> = SegQueue::new();

/// Has the ticker call it at each tick until it returns false. The caller asks for ticks.
pub fn at_each_tick(what: impl Fn() -> bool + Send + 'static) {
    AT_TICKS.push(Box::new(what));
}

/// Sets the demand, if it is one of these, and returns it as it was. `SeqCst`: a ticker that parks and a call
/// that asks both change the word, and the later one must see the earlier one.
fn set_demand(from: impl Fn(u32) -> bool, to: u32) -> Option<u32> {
    let set = |clock| from(clock & DEMAND).then_some((clock & !DEMAND) | to);
    let before = CLOCK.fetch_update(SeqCst, SeqCst, set);
    before.ok().map(|clock| clock & DEMAND)
}

#[cold]
fn ask() {
    if set_demand(|_| true, ASKED) == Some(PARKED) {
        // If `start_ticker` holds the lock, it unparks the ticker itself after its
        // release.
        if let Ok(ticker) = TICKER.try_read() {
            ticker.iter().for_each(|(_, ticker)| ticker.unpark());
        }
    }
}

/// The process that owns the ticker, and the ticker, which starts with the first lane.
static TICKER: RwLock<Option<(u32, Thread)>> = RwLock::new(None);

/// Starts the ticker, if this process has none.
pub(crate) fn start_ticker() -> io::Result<()> {
    let mut ticker = TICKER.write().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    let thread = match ticker.take().filter(|(owner, _)| *owner == process) {
        Some((_, own)) => own,
        None => giveway::spawn("twolane-ticker", tick)?,
    };
    *ticker = Some((process, thread.clone()));
    drop(ticker);
    // For a call of `ask` that found the lock held.
    thread.unpark();
    Ok(())
}

fn tick() {
    let mut unasked = 0;
    loop {
        match set_demand(|demand| demand == ASKED, NOT_ASKED) {
            Some(_) => unasked = 0,
            None => unasked += 1,
        }
        if unasked > PATIENCE && set_demand(|demand| demand == NOT_ASKED, PARKED).is_some() {
            while CLOCK.load(SeqCst) & DEMAND == PARKED {
                thread::park();
            }
            unasked = 0;
        }
        thread::sleep(TICK);
        CLOCK.fetch_add(ONE_TICK, Relaxed);
        for call in (0..AT_TICKS.len()).map_while(|_| AT_TICKS.pop()) {
            // What it holds may be dropped here, and wake someone.
            panics::run_hook("what the ticker calls", move || {
                if call() {
                    AT_TICKS.push(call);
                }
            });
        }
    }
}

/// Yields to the other jobs of the lane if this job's slice of 5 to 10 ms is over.
///
/// Otherwise it does nothing, at about the cost of one atomic load (see
/// `twolane::guide::cost`). Call it in the loop of a future on the CPU lane that
/// computes for a long time without waiting. A yield is also the point where such a
/// future observes its cancellation and a shutdown.
///
/// A job that yields goes behind all jobs that have not yielded, also behind those that
/// come later. So a small job waits for one slice, not for one slice of each long job.
/// After eight such jobs in a row, a job that has yielded gets its turn.
///
/// A closure cannot yield; see [`JobContext`](crate::JobContext). Outside a CPU job it
/// yields like [`tokio::task::yield_now`], once per slice. The clock of the slices runs
/// only in a process that has a lane.
///
/// # Cancel safety
///
/// This function is cancel safe: the future holds nothing.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::builder().worker_threads(1).build().unwrap();
/// let long = cpu.spawn(async {
///     let mut sum = 0_u64;
///     for n in 0..100_000 {
///         sum += n;
///         twolane::yield_if_due().await;
///     }
///     sum
/// });
/// assert_eq!(long.await.unwrap(), 4_999_950_000);
/// # }
/// ```
pub fn yield_if_due() -> Yield {
    Yield {
        only_if_due: true,
        yielded: false,
    }
}

/// Yields to the other jobs of the lane, whether or not a slice is over.
///
/// Use it in a future that has a good moment for it, such as between two batches.
/// [`yield_if_due`] is for inner loops, and describes the order of the jobs. Outside a
/// CPU job it yields like [`tokio::task::yield_now`].
///
/// # Cancel safety
///
/// This function is cancel safe: the future holds nothing.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() {
/// let cpu = twolane::CpuRuntime::builder().worker_threads(1).build().unwrap();
/// let sum = cpu.spawn(async {
///     let mut sum = 0_u64;
///     for batch in [[1, 2], [3, 4]] {
///         sum += batch.iter().sum::<u64>();
///         twolane::yield_now().await;
///     }
///     sum
/// });
/// assert_eq!(sum.await.unwrap(), 10);
/// # }
/// ```
pub fn yield_now() -> Yield {
    Yield {
        only_if_due: false,
        yielded: false,
    }
}

/// A future that yields: returned by [`yield_if_due`] and [`yield_now`].
#[derive(Debug)]
#[must_use = "nothing yields unless this is awaited"]
pub struct Yield {
    only_if_due: bool,
    yielded: bool,
}

impl Future for Yield {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.yielded || (self.only_if_due && !is_yield_due()) {
            return Poll::Ready(());
        }
        self.yielded = true;
        change(|step| (step.yielded, step.slice_began) = (true, ticks()));
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
